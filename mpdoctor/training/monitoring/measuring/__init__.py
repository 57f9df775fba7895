"""One step in many is computed once more and measured, on the device: activations, gradients, what float16 loses."""
