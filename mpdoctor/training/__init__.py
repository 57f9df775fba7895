"""What users keep in their own training: an optimizer that scales the loss. TensorFlow and, of mpdoctor, loss_scale."""

from mpdoctor.training.loss_scale_optimizer import made_for_this_process

LossScaleOptimizer = made_for_this_process()

__all__ = ["LossScaleOptimizer"]
