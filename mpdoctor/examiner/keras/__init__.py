"""The only place that knows Keras' internals: one adapter for Keras 2, one for Keras 3."""
