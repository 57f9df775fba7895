"""How a LossScaleOptimizer answers for the optimizer inside it: which names it passes on, by Keras.

Three wrappers exist: Keras 3's; Keras 2's around an optimizer of TensorFlow 2.11 and later
(`LossScaleOptimizerV3`), here NEW; and Keras 2's around a classic one (`keras.optimizers.legacy.*`,
everything up to TensorFlow 2.10), here CLASSIC. The names come from `tests/support/live_delegation.py`, run in
Keras 3.15, tf_keras 2.21, TensorFlow 2.15 and 2.10; `tests/rules/test_rules_source.py` compares them with the
Keras that is installed.
"""

from __future__ import annotations

from mpdoctor.knowledge import words

KERAS3, NEW, CLASSIC = "Keras 3", "Keras 2, new", "Keras 2, classic"


# Reading these raises AttributeError: names that some optimizer or wrapper of some Keras has, and this wrapper has not.
MISSING: dict[str, frozenset[str]] = {
    KERAS3: words(
        """
        _decayed_lr _get_hyper _hyper _hypers_created _set_hyper _weights adam_beta_1 adam_beta_2
        adam_lr_ratio adam_velocities adam_weight_decay adaptive_epsilon add_slot add_weight aggregate_gradients
        amsgrad beta beta_1 beta_2 beta_2_decay centered clip_threshold compute_gradients decay
        dynamic dynamic_counter epsilon epsilon_1 epsilon_2 exclude_embeddings exclude_layers
        get_gradients get_scaled_loss get_slot get_slot_names get_unscaled_gradients get_updates
        get_weights gradient_aggregator gradient_transformers initial_accumulator_value jit_compile
        l1_regularization_strength l2_regularization_strength l2_shrinkage_regularization_strength
        learning_rate_power loss_scale lr lr_adjust minimize momentum momentums muon_a muon_b muon_c nesterov
        ns_steps relative_step rho rms_rate transpose_last_axis warmup_steps weights
        zeropower_via_newtonschulz5
        """
    ),
    NEW: words(
        """
        _decayed_lr _get_hyper _hyper _hypers_created _set_hyper _variables _weights adam_beta_1
        adam_beta_2 adam_lr_ratio adam_velocities adam_weight_decay adaptive_epsilon add_optimizer_variables
        add_slot add_weight amsgrad apply assign assign_add assign_sub beta beta_1 beta_2
        beta_2_decay centered check_finite clip_threshold clipnorm clipvalue decay
        ema_overwrite_frequency epsilon epsilon_1 epsilon_2 exclude_embeddings exclude_layers
        get_gradients get_slot get_slot_names get_updates get_weights global_clipnorm
        gradient_accumulation_steps gradient_aggregator gradient_transformers
        initial_accumulator_value jit_compile l1_regularization_strength l2_regularization_strength
        l2_shrinkage_regularization_strength learning_rate_power loss_scale_factor lr_adjust
        momentum momentums muon_a muon_b muon_c name nesterov ns_steps relative_step rho rms_rate scale_loss
        stateless_apply transpose_last_axis warmup_steps weight_decay weights
        zeropower_via_newtonschulz5
        """
    ),
    CLASSIC: words(
        """
        _hyper _hypers_created _weights adam_beta_1 adam_beta_2 adam_lr_ratio adam_weight_decay
        adaptive_epsilon add_optimizer_variables add_variable add_variable_from_reference
        aggregate_gradients amsgrad apply assign assign_add assign_sub beta_2_decay build centered
        check_finite clip_threshold compute_gradients ema_momentum ema_overwrite_frequency epsilon
        epsilon_1 epsilon_2 exclude_embeddings exclude_from_weight_decay exclude_layers
        finalize_variable_values gradient_accumulation_steps gradient_aggregator
        gradient_transformers initial_accumulator_value jit_compile
        l2_shrinkage_regularization_strength load_own_variables loss_scale_factor lr_adjust muon_a
        muon_b muon_c name nesterov ns_steps relative_step rms_rate save_own_variables scale_loss
        stateless_apply transpose_last_axis update_step use_ema warmup_steps weight_decay
        zeropower_via_newtonschulz5
        """
    ),
}

# Names that no optimizer has: in Keras 2 those of a built wrapper of Keras 3, in both those of PyTorch's GradScaler, of
# TensorFlow's old loss scales and of guesses (TensorFlow 2.4, 2.10, 2.15 and 2.21).
_OF_GRAD_SCALER = words(
    """
    get_scale unscale_ unscale unscale_gradients scale_gradients current_loss_scale step update
    increment_period initial_loss_scale _inner_optimizer
    scale loss_scale_value get_loss_scale current_scale dynamic_loss_scale get_current_scale get_current_loss_scale
    unscale_grads get_unscaled_grads unscale_loss get_unscaled_loss
    """
)
OF_ANOTHER_WRAPPER: dict[str, frozenset[str]] = {
    KERAS3: _OF_GRAD_SCALER,
    NEW: _OF_GRAD_SCALER | {"dynamic_scale", "step_counter"},
    CLASSIC: _OF_GRAD_SCALER | {"dynamic_scale", "step_counter"},
}

# Methods that the wrapper inherits and that raise AttributeError as soon as they are called, because they look for the
# hyper-parameters on the wrapper itself (TensorFlow 2.4, 2.10 and 2.15).
BROKEN: dict[str, frozenset[str]] = {
    KERAS3: frozenset(),
    NEW: frozenset(),
    CLASSIC: words("_decayed_lr _get_hyper _set_hyper _serialize_hyperparameter"),
}

# The wrapper answers these with its own None, False or default, whatever the optimizer inside holds.
OWN: dict[str, frozenset[str]] = {
    KERAS3: words("""
        clipnorm clipvalue ema_momentum ema_overwrite_frequency global_clipnorm
        gradient_accumulation_steps loss_scale_factor use_ema weight_decay
        """),
    NEW: frozenset(),
    CLASSIC: frozenset(),
}

# Hyper-parameters whose assignment succeeds, on the wrapper, and never reaches the optimizer inside.
LOST: dict[str, frozenset[str]] = {
    KERAS3: words(
        """
        adam_beta_1 adam_beta_2 adam_lr_ratio adam_weight_decay adaptive_epsilon amsgrad beta beta_1
        beta_2 beta_2_decay centered clip_threshold clipnorm clipvalue decay ema_momentum
        ema_overwrite_frequency epsilon epsilon_1 epsilon_2 exclude_embeddings global_clipnorm
        gradient_accumulation_steps initial_accumulator_value jit_compile l1_regularization_strength
        l2_regularization_strength l2_shrinkage_regularization_strength learning_rate_power
        loss_scale_factor lr momentum muon_a muon_b muon_c nesterov ns_steps relative_step rho
        rms_rate use_ema warmup_steps weight_decay
        """
    ),
    NEW: words(
        """
        adam_beta_1 adam_beta_2 adam_lr_ratio adam_weight_decay adaptive_epsilon amsgrad beta beta_1
        beta_2 beta_2_decay centered clip_threshold clipnorm clipvalue decay ema_overwrite_frequency
        epsilon epsilon_1 epsilon_2 exclude_embeddings global_clipnorm gradient_accumulation_steps
        initial_accumulator_value jit_compile l1_regularization_strength l2_regularization_strength
        l2_shrinkage_regularization_strength learning_rate_power loss_scale_factor momentum muon_a
        muon_b muon_c nesterov ns_steps relative_step rho rms_rate warmup_steps weight_decay
        """
    ),
    CLASSIC: words(
        """
        amsgrad centered epsilon nesterov
        """
    ),
}

# What these optimizers hold where the program gives them nothing, in the order of their parameters behind
# `learning_rate`; equal in Keras 3.15 and tf_keras 2.21, the order in 2.10 and 2.15 as well.
_ADAM = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-07, "amsgrad": False}
DEFAULTS: dict[str, dict[str, float | bool]] = {
    "Adadelta": {"rho": 0.95, "epsilon": 1e-07},
    "Adagrad": {"initial_accumulator_value": 0.1, "epsilon": 1e-07},
    "Adam": _ADAM,
    "AdamW": {"weight_decay": 0.004, **_ADAM},
    "Adamax": {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-07},
    "Lion": {"beta_1": 0.9, "beta_2": 0.99},
    "Nadam": {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-07},
    "RMSprop": {"rho": 0.9, "momentum": 0.0, "epsilon": 1e-07, "centered": False},
    "SGD": {"momentum": 0.0, "nesterov": False},
}

# What the class `Optimizer` itself takes, and its get_config gives back in one Keras or another.
OF_EVERY_OPTIMIZER = words(
    """
    learning_rate weight_decay clipnorm clipvalue global_clipnorm use_ema ema_momentum ema_overwrite_frequency
    jit_compile loss_scale_factor gradient_accumulation_steps
    """
)
# What the constructors of Keras' own optimizers take, and their get_config gives back.
HYPER_PARAMETERS = words(
    """
    learning_rate beta_1 beta_2 epsilon amsgrad rho momentum nesterov centered weight_decay clipnorm clipvalue
    global_clipnorm use_ema ema_momentum ema_overwrite_frequency jit_compile loss_scale_factor
    gradient_accumulation_steps initial_accumulator_value learning_rate_power l1_regularization_strength
    l2_regularization_strength l2_shrinkage_regularization_strength beta beta_2_decay epsilon_1 epsilon_2
    clip_threshold relative_step
    """
)
