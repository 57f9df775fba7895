"""What users keep in their own training: an optimizer that scales the loss, and a monitor of any that does. TensorFlow
and, of mpdoctor, loss_scale."""

from mpdoctor.training.loss_scale_optimizer import made_for_this_process
from mpdoctor.training.monitoring.monitor import LossScaleMonitor

LossScaleOptimizer = made_for_this_process()

__all__ = ["LossScaleMonitor", "LossScaleOptimizer"]
