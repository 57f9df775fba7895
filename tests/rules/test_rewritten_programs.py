"""Of a program that is written in another way, and does the same, the same is said."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from judging import facts_of, findings_in, lines_and_codes
from marks import marks_from_source
from rewrites import REWRITES, rewritten
from rewrites_of_calls import CALLS
from rewrites_of_constants import CONSTANTS
from rewrites_of_definitions import DEFINITIONS
from rewrites_of_objects import OBJECTS
from rewrites_of_settings import SETTINGS
from rewrites_of_statements import STATEMENTS
from rewrites_of_style import STYLES
from sampling import Sample

pytestmark = pytest.mark.fast

FIXTURES = Path(__file__).parents[2] / "fixtures" / "rules"
ABOUT_TEXT = ("mp001", "mp005")  # rules about what no rewrite leaves as it is
PROGRAMS = [path for path in sorted(FIXTURES.glob("*/*.py")) if path.parent.name not in ABOUT_TEXT]
NOT_FOLLOWED = {  # fixtures of which something else is said, by the rewrite
    "partially_applied": "mp119/clean_metrics",
    "by_while": """
        mp202/clean_later_rounds mp201/flagged_layers_by_index
        mp201/flagged_weights_of_a_list
    """,
    "enumerated": "mp201/flagged_layers_by_index",
    "named_arguments": "mp306/flagged_behind_other_questions",
    "configured": """
        mp309/flagged_policy_asked_by_its_name
    """,
    "decorated": """
        mp409/flagged_beside_unscaled_gradients
    """,
    "in_a_class": """
        mp201/clean_counted_in_a_while
        mp115/flagged_never_set mp115/flagged_shown_as_text mp116/flagged_never_used
        mp306/flagged_factory_methods mp315/clean_only_evaluates mp415/flagged_method_named_run
        mp701/clean_resumed_to_predict mp701/flagged_resumed_by_a_table
    """,
    "in_helpers": """
        mp502/clean_step_of_an_optimizer
        mp116/flagged_wrapper_for_graphs_in_a_function
        mp116/flagged_wrapper_for_graphs
        mp201/flagged_layers_taken_from_a_queue
        mp201/flagged_layers_taken_from_a_list
        mp201/clean_behind_a_loop_over_policies
        mp310/clean_asked_of_the_settings mp506/flagged_own_model
        mp201/flagged_last_round_of_sizes
        mp201/flagged_layers_by_index
        mp202/flagged_decorator_tries_twice
        mp505/flagged_every_few_steps
        mp202/flagged_in_random_order
        mp401/flagged_run_in_each_arm
        mp401/flagged_compiled_for_a_sibling
        mp201/flagged_heads_by_setattr mp413/clean_layers_made_in_build
        mp101/flagged_where_it_is_not_wrapped_yet mp102/flagged_except_that_ends
        mp105/flagged_in_a_method_of_a_library mp106/clean_float16_in_name mp107/clean_own_fit_that_nobody_calls
        mp108/flagged_in_the_try mp110/flagged_handler_of_its_own mp110/flagged_memory_growth mp114/flagged_choice
        mp116/flagged_graph_rewrite mp116/flagged_returned mp201/flagged_list_of_layers
        mp201/flagged_own_train_step mp202/flagged_made_from_its_config
        mp203/flagged_variable_dtype_by_name mp204/flagged_metric_given_a_dtype
        mp204/flagged_raw_variable mp207/flagged_made_from_its_config mp208/flagged_made_by_a_function
        mp211/flagged_decorated_call mp216/flagged_in_own_layer mp301/clean_asserted mp304/clean_wrapping_optimizer
        mp306/clean_dropped_at_once mp310/flagged_where_it_is_not_wrapped_yet
        mp401/clean_functions_in_functions mp401/clean_switch_that_is_off mp401/flagged_torch
        mp404/flagged_asked_by_hasattr mp405/flagged_asked_by_hasattr mp409/clean_through_functions
        mp409/flagged_methods mp410/flagged_made_by_one_function
        mp412/flagged_callback mp503/clean_sums_in_tests mp701/flagged_command_of_a_parser
        mp701/flagged_resumed_by_a_table
        mp207/flagged_both_cast mp401/flagged_model_for_others
        mp411/flagged_between_compile_and_fit
    """,
    "in_inner_functions": """
        mp506/flagged_own_model
        mp104/clean_each_dtype_in_its_arm mp105/flagged_in_a_method_of_a_library mp106/clean_float16_in_name
        mp110/flagged_handler_of_its_own mp110/flagged_memory_growth mp201/clean_output_by_argument
        mp201/flagged_own_train_step mp202/flagged_made_from_its_config
        mp207/flagged_made_from_its_config mp208/flagged_base_class mp208/flagged_made_by_a_function
        mp211/flagged_decorated_call mp213/clean_cloned_backbone_keras2 mp216/flagged_in_own_layer
        mp301/clean_asserted mp304/clean_wrapping_optimizer mp410/flagged_made_by_one_function
        mp503/clean_sum_to_be_saved mp503/clean_sums_in_tests mp401/flagged_model_for_others
    """,
    "in_main": """
        mp115/clean_held_for_others mp208/flagged_base_class mp411/flagged_unbuilt
    """,
    "in_parts": """
        mp201/flagged_last_round_of_sizes
        mp401/flagged_run_in_each_arm
        mp505/flagged_a_term_of_the_loss
    """,
    "kept_in_self": """
        mp202/flagged_in_random_order mp202/flagged_later_rounds
        mp306/flagged_setting_asked_everywhere
        mp110/flagged_handler_of_its_own mp116/flagged_never_used mp201/flagged_chained_stages
        mp202/clean_carried_through_a_loop mp202/clean_dtype_in_a_named_dictionary
        mp202/flagged_functional_skip mp306/flagged_in_turn
        mp406/clean_others_have_their_own_scale mp413/flagged_class
        mp413/flagged_policy_behind_a_flag mp502/clean_angle_that_is_counted mp502/clean_stopped_behind
        mp201/flagged_weights_of_a_list
    """,
    "mixed_in": """
        mp202/clean_switched_off
        mp202/flagged_methods_that_keras_calls
        mp104/flagged_method_of_an_enumeration mp203/flagged_linear_from_the_guide mp212/flagged_state_given_back
    """,
    "renamed": """
        mp115/clean_held_for_others mp116/clean_used_elsewhere
    """,
    "appended": """
        mp201/flagged_product_of_settings
    """,
    "added_one_by_one": """
        mp106/clean_float16_in_name
    """,
    "aliased": """
        mp102/clean_not_there_yet mp102/clean_skipped_test mp111/flagged_legacy_environment
    """,
    "by_lambda": """
        mp202/flagged_decorated_call
    """,
    "directly_imported": """
        mp102/clean_not_there_yet mp102/clean_skipped_test
    """,
    "made_in_functions": """
        mp412/flagged_callback
    """,
    "policies_as_objects": """
        mp104/flagged_no_name
        mp114/flagged_text
    """,
    "registered": """
        mp202/clean_switched_off
        mp413/flagged_policy_behind_a_flag
    """,
    "in_a_table": """
         mp311/flagged_settings_of_an_experiment
    """,
    "in_class_attributes": """
        mp202/flagged_attention_helper
        mp502/flagged_structured_settings
    """,
    "inlined": """
        mp115/flagged_given_by_function
    """,
    "methods_by_name": """
        mp201/flagged_layers_taken_from_a_queue
        mp312/clean_optimizer_kept_before_compile
        mp401/flagged_optimizer_kept_before_compile
        mp201/flagged_last_round_of_sizes
        mp411/flagged_optimizer_of_a_model_made_elsewhere
        mp106/flagged_bare_in_keras2_loop
        mp110/flagged_handler_of_its_own mp110/flagged_pass_in_function mp201/flagged_list_of_layers
        mp301/flagged_inherited_method mp303/flagged_behind_a_flag mp303/flagged_callback
        mp303/flagged_classic mp303/flagged_compiled mp303/flagged_function mp410/flagged_class
        mp410/flagged_gan mp410/flagged_made_by_one_function mp410/flagged_one_loss_for_two
        mp410/flagged_parameters mp410/flagged_unscaled_by_the_other mp201/flagged_weights_of_a_list
        mp410/flagged_applied_by_the_other
    """,
    "methods_of_an_object": """
        mp201/flagged_chained_stages mp204/flagged_in_inner_functions mp208/flagged_made_by_a_function
        mp301/clean_asserted mp501/flagged_method_taken_from_a_function
    """,
    "starred": """
        mp503/clean_sum_that_is_differentiated
        mp401/flagged_run_in_each_arm
        mp409/flagged_kept_in_a_dict
    """,
    "static_methods": """
        mp110/flagged_handler_of_its_own mp201/flagged_chained_stages mp204/flagged_in_inner_functions
        mp208/flagged_made_by_a_function mp301/clean_asserted mp501/flagged_method_taken_from_a_function
    """,
    "subclassed": """
        mp202/clean_switched_off
        mp106/flagged_behind_another_layer mp107/flagged_own_layer_by_itself mp201/flagged_made_by_a_metaclass
        mp212/flagged_state_given_back mp312/flagged_own_compile
    """,
    "unpacked": """
        mp116/flagged_never_used mp211/flagged_decorated_call
    """,
    "by_options": """
        mp119/clean_metrics mp204/flagged_metric_given_a_policy
        mp401/flagged_run_in_each_arm
        mp204/flagged_metric_given_a_dtype
    """,
    "attributes_set_by_name": """
        mp202/clean_switched_off
        mp115/flagged_kept_in_an_attribute mp115/flagged_kept_in_settings
    """,
    "as_properties": """
        mp312/clean_optimizer_kept_before_compile
        mp401/flagged_optimizer_kept_before_compile
        mp202/clean_switched_off
        mp115/flagged_kept_in_settings
        mp121/flagged_model_class_and_loss mp121/flagged_own_layer mp201/flagged_weights_of_a_list
        mp121/flagged_layers_of_a_registry
    """,  # where the class has the property itself, the assignment is right
    "attributes_in_a_dict": """
        mp401/flagged_optimizer_kept_before_compile
        mp202/clean_switched_off
        mp201/flagged_layers_by_index
        mp502/flagged_made_many_times
        mp121/flagged_model_class_and_loss mp201/flagged_activation_by_name
        mp106/flagged_set_by_its_own_compile mp202/clean_float32_base mp314/flagged_hyper_parameter mp314/flagged_item
        mp314/flagged_kept_under_another_name mp314/flagged_partly mp314/flagged_saved mp501/flagged_given_or_default
        mp121/flagged_layers_of_a_registry
    """,
    "in_a_namespace": """
        mp302/clean_policy_that_a_setting_switches_off
        mp106/flagged_bare_in_keras2_loop
        mp106/flagged_jax mp115/flagged_never_set mp115/flagged_shown_as_text mp116/flagged_never_used
        mp202/flagged_distributions
        mp309/flagged_policy_asked_by_its_name mp401/clean_switch_that_is_off mp401/flagged_jax
        mp602/flagged_filled_with_words
    """,
    "in_closures": """
        mp406/flagged_variables_applied
    """,
    "by_next": """
        mp201/flagged_filled_in_a_loop mp201/flagged_layers_by_index
        mp201/flagged_last_round_of_sizes
        mp202/flagged_in_random_order
        mp201/flagged_chained_stages mp306/flagged_in_turn
        mp701/flagged_layers_made_in_a_loop
        mp505/flagged_outputs_inside_outputs
    """,
    "made_in_build": """
        mp201/flagged_head_made_by_a_subclass
    """,
    "texts_of_the_command_line": """
        mp411/flagged_called_behind_a_flag
        mp701/flagged_layers_that_hand_on_their_policy
        mp701/flagged_h5_of_keras2
        mp204/flagged_metric_given_a_policy mp309/flagged_asked_under_bfloat16
        mp309/flagged_asked_under_bfloat16_keras3 mp504/flagged_given_a_policy
        mp119/flagged_pictures
        mp104/flagged_failure_is_hidden
        mp302/flagged_policy_behind_a_setting
        mp119/flagged_cast mp119/flagged_inputs mp119/flagged_weights
        mp102/clean_refused_where_removed mp104/clean_asked_of_its_object mp104/flagged_asked_of_the_settings
        mp104/flagged_default_that_nobody_asks_about mp105/clean_island_on_purpose mp105/clean_set_back
        mp105/flagged_functional mp106/clean_policy_chosen_by_a_dtype mp106/flagged_auto_scale_loss
        mp106/flagged_behind_a_flag mp106/flagged_layer_policies mp106/flagged_model_calls_itself
        mp106/flagged_policy_put_back mp108/flagged_in_the_arm mp109/flagged_environment
        mp109/flagged_environment_keywords mp109/flagged_matched mp109/flagged_options_and_policy
        mp109/flagged_rewrite_and_policy_keras2 mp113/flagged_from_config mp113/flagged_json
        mp114/flagged_choice mp114/flagged_text mp115/flagged_given_by_function mp115/flagged_handed_on_twice
        mp117/flagged_option mp118/flagged_option mp201/clean_made_by_a_metaclass
        mp201/flagged_command_of_a_parser mp201/flagged_function_that_keeps_the_dtype
        mp201/flagged_made_by_a_metaclass mp201/flagged_policy_put_together mp202/flagged_resized
        mp203/flagged_in_a_model mp207/flagged_training_step mp309/flagged_bfloat16_loop mp309/flagged_float32
        mp309/flagged_policy_asked_by_its_name mp309/flagged_read_for_its_scale
        mp310/flagged_default_of_an_argument mp401/clean_functions_in_functions
        mp401/flagged_bfloat16_unscaled_all_the_same mp402/flagged_factor_of_the_command_line
        mp409/clean_kept_in_a_dict mp409/clean_own_metric mp409/clean_says_so mp409/clean_through_functions
        mp412/clean_where_the_policy_is_float32 mp413/clean_dtype_of_an_option
        mp501/flagged_in_an_arm_beside_a_layer_in_half mp504/flagged_cast_after_halving
        mp507/flagged_cast_behind_activation mp512/flagged_length_of_input
        mp602/flagged_filled_with_words mp701/flagged_checkpoint mp701/flagged_command_of_a_parser
        mp701/flagged_compiled_again mp701/flagged_layers_made_in_a_loop mp701/flagged_new_model_on_its_layers
        mp701/flagged_part_of_another_model mp701/flagged_path_of_an_argument mp701/flagged_policy_put_back
        mp701/flagged_resumed_by_a_table mp701/flagged_resumed_run mp701/flagged_resumed_with_its_optimizer
        mp702/flagged_class mp702/flagged_inside_another_model mp702/flagged_policy_put_back
        mp702/flagged_under_a_manager mp704/flagged_concrete_functions
        mp121/flagged_layers_of_a_registry
    """,
    "numbers_of_the_command_line": """
        mp201/flagged_layers_taken_from_a_list
        mp405/flagged_each_example_keras2
        mp201/flagged_function_that_keeps_the_dtype
        mp202/flagged_number_first
        mp202/flagged_number_first_in_a_layer_alone mp214/flagged_bounded_rows
        mp310/flagged_default_of_an_argument mp402/flagged_mean_of_batches mp405/flagged_by_hand
        mp405/flagged_by_hand_keras2 mp501/flagged_spellings mp502/clean_no_gradient
        mp505/flagged_number_first mp505/flagged_number_first_in_a_step
    """,
    "flags_of_the_command_line": """
        mp106/flagged_accumulated_elsewhere mp106/flagged_accumulated_in_a_trainer mp115/clean_returned
        mp201/clean_output_by_argument mp301/clean_unknown_optimizer
        mp409/clean_asked_not_to_scale mp512/flagged_length_of_input
    """,
    "read_as_json": """
         mp311/flagged_settings_of_an_experiment mp402/flagged_by_hand
        mp402/flagged_by_hand_in_a_class mp402/flagged_constant_tensor_by_hand mp402/flagged_factor_of_the_command_line
    """,
    "as_defaults": """
        mp502/flagged_generalized_mean
        mp503/flagged_exponential_of_an_exponential
        mp202/flagged_dtype_of_a_carried_tensor
         mp202/flagged_switched_on_later
        mp202/flagged_lambda_of_a_models_class mp202/flagged_methods_that_keras_calls
        mp202/flagged_promoted_by_a_weight
        mp202/flagged_lambda_that_gives_its_input
        mp202/flagged_lists_in_products mp202/flagged_promoted_by_keras_ops
        mp202/flagged_all_makers mp202/flagged_carried_through_a_loop mp202/flagged_chain_of_layers
        mp202/flagged_constant_and_noise mp202/flagged_further_functions
        mp202/flagged_later_input_of_the_program mp202/flagged_left_out mp202/flagged_lists_of_floats
        mp202/flagged_number_first mp202/flagged_number_first_in_a_layer_alone mp202/flagged_tables_keras3
        mp303/clean_second_argument mp402/flagged_by_hand_in_a_class mp403/flagged_initial_scale
        mp403/flagged_train_step mp406/flagged_average_of_clipped mp408/flagged_loss_scale_factor
        mp409/flagged_running_sum mp501/flagged_spellings mp502/flagged_epsilon_of_keras
        mp502/flagged_focal_loss_keras2 mp502/flagged_limits_of_float_types mp502/flagged_none_by_default
        mp502/flagged_one_in_float32_too mp502/flagged_power_and_arc mp503/flagged_softmax_by_hand
        mp504/flagged_autoencoder mp504/flagged_cast_after_halving mp504/flagged_outputs_of_layers
        mp505/flagged_constant_in_compiled_loss_keras2 mp505/flagged_number_first
        mp505/flagged_number_first_in_a_step mp202/flagged_noise_in_one_arm
        mp505/flagged_weights_in_one_arm mp202/flagged_activation_functions mp503/flagged_sigmoid_by_hand
    """,
    "as_powers": """
        mp402/flagged_by_hand
    """,
    "with_walrus": """
        mp201/flagged_policy_put_together mp202/clean_dtype_in_a_named_dictionary mp311/clean_overridden_settings
        mp311/flagged_updated_settings
    """,
    "checked": """
        mp504/flagged_outputs_of_layers
        mp410/flagged_divided_by_a_number
        mp410/clean_divided_by_its_own_scale
        mp404/clean_own_tape
        mp106/clean_policy_among_choices
        mp307/clean_made_in_each_round_of_a_comprehension
        mp307/flagged_in_each_round_of_a_comprehension
        mp312/clean_looks_for_overflows_itself
        mp312/flagged_applied_by_the_optimizer_inside
        mp411/clean_called_of_its_own_class
        mp505/flagged_in_replicas_by_keyword
        mp505/flagged_pictures_changed_at_random
        mp409/clean_sum_of_two_losses
        mp402/clean_sums_unscaled_in_their_place mp402/clean_unscaled_for_the_optimizer_inside
        mp402/flagged_clipped_for_the_optimizer_inside
        mp402/flagged_given_to_the_optimizer_inside mp402/flagged_sums_of_one_of_two
        mp403/clean_sums_divided_by_their_number mp403/clean_sums_unscaled_for_the_optimizer_inside
        mp403/flagged_sums_in_variables mp403/flagged_sums_in_variables_keras2
        mp405/clean_clipped_behind_the_division_by_hand mp405/clean_sums_clipped_at_a_scaled_limit
        mp405/flagged_divided_by_hand mp405/flagged_divided_by_hand_keras2 mp405/flagged_sums_in_variables
        mp307/flagged_taken_out_of_the_other_wrapper
        mp307/flagged_taken_out_of_the_other_wrapper mp507/flagged_written_by_hand mp507/clean_written_by_hand
        mp409/clean_where_it_is_mixed
        mp309/clean_asked_under_bfloat16 mp309/flagged_asked_under_bfloat16
        mp201/clean_cast_to_the_labels_dtype mp201/flagged_cast_to_the_outputs_dtype
        mp402/flagged_unscaled_to_clip mp402/clean_unscaled_to_clip mp403/clean_unscaled_in_one_of_two_ifs
        mp505/flagged_every_few_steps mp505/clean_every_few_steps
        mp505/flagged_turned_on_later mp505/clean_turned_on_later
        mp413/flagged_gradients_of_a_graph mp413/clean_gradients_of_a_graph
        mp505/flagged_penalty_of_a_gradient mp505/clean_penalty_of_a_gradient
        mp505/flagged_replayed_memory mp505/clean_replayed_memory mp401/flagged_second_of_two_heads
        mp401/clean_added_up_in_variables_keras3 mp401/clean_gradients_kept_to_be_shown_keras3
        mp401/clean_policy_gradient
        mp411/clean_optimizer_of_a_model_made_elsewhere
        mp411/flagged_optimizer_of_a_model_made_elsewhere
        mp401/flagged_compiled_for_a_sibling mp401/clean_compiled_for_a_sibling
        mp401/clean_graph_gradients mp402/clean_graph_gradients mp402/flagged_graph_gradients
        mp406/clean_behind_the_loop_of_batches mp406/clean_one_scale_in_a_step mp406/flagged_another_answer
        mp106/clean_wrapped_in_keras2_loop mp106/clean_wrapped_somewhere_keras2
        mp401/flagged_losses_of_layers_cast_one_by_one
        mp405/clean_each_example_keras2
        mp402/clean_divided_in_other_ways mp402/clean_multiplied_by_a_weight mp402/clean_scaled_and_unscaled_twice
        mp402/flagged_scaled_twice mp402/flagged_scaled_twice_keras3
        mp211/clean_decoder_of_a_metric mp211/flagged_decoder_of_a_metric
        mp309/clean_policy_in_a_node mp504/clean_policy_in_a_node mp504/flagged_policy_in_a_node
        mp401/clean_another_option_decides mp505/clean_heads_for_counted_boxes mp505/clean_heads_of_both_dtypes
        mp505/flagged_heads_for_counted_boxes mp505/flagged_computed_outputs mp505/clean_computed_outputs
        mp505/flagged_computed_outputs_keras2
        mp104/flagged_default_that_nobody_asks_about mp105/flagged_loop mp106/clean_by_name
        mp106/clean_made_in_comprehensions mp106/clean_model_calls_itself
        mp106/clean_scale_loss_for_any_optimizer mp106/clean_two_steps_by_flag
        mp106/flagged_auto_scale_loss_behind_a_flag mp107/clean_compiled_and_predicts
        mp110/flagged_handler_of_its_own mp201/clean_compiled_and_predicts mp201/clean_compiled_in_a_test
        mp201/clean_hidden_beside_the_output mp201/clean_loss_in_a_method_of_its_own
        mp201/clean_outputs_cast_one_by_one mp201/clean_own_train_step mp201/flagged_loss_in_a_method_of_its_own
        mp201/flagged_of_two_outputs mp202/clean_graphs_rewritten_and_layer_unused
        mp207/clean_step_of_one_policy mp207/clean_training_step mp207/flagged_training_step
        mp217/flagged_model_called mp303/flagged_argument_of_a_step mp303/flagged_keywords_of_keras2
        mp307/clean_functions_for_others mp308/clean_tape_and_callbacks mp309/clean_loop_not_run
        mp309/flagged_bfloat16_loop mp309/flagged_read_for_its_scale mp312/clean_either_of_two
        mp312/clean_model_optimizer mp312/clean_no_automatic_wrapper mp312/clean_only_without_a_wrapper
        mp312/clean_own_compile mp312/clean_switched_off_by_a_flag mp312/clean_unscaled_by_hand
        mp312/clean_wrapped_before mp312/flagged_own_compile mp312/flagged_scaled_by_the_other
        mp312/flagged_wrapped_by_hand mp315/flagged_loop mp401/clean_an_arm_for_each
        mp401/clean_an_arm_for_each_keras3 mp401/clean_chosen_with_the_wrapper
        mp401/clean_functions_in_functions mp401/clean_inherited_step mp401/clean_keras2 mp401/clean_keras3
        mp401/clean_losses_by_name mp401/clean_losses_by_name_keras2 mp401/clean_losses_of_layers
        mp401/clean_penalty_of_weights mp401/clean_scaled_by_flag mp401/clean_scaled_in_a_method
        mp401/clean_scaled_where_nobody_sees mp401/clean_tape_entered_again mp401/clean_template_behind_methods
        mp401/clean_template_train_step mp401/clean_two_ways mp401/flagged_one_of_several_steps
        mp401/flagged_unscaled_gan mp402/clean_accumulated mp402/clean_conditional mp402/clean_default_hook
        mp402/clean_divided_by_a_number mp402/clean_divided_by_hand mp402/clean_in_containers
        mp402/clean_kept_unscaled mp402/clean_keras3 mp402/clean_sums_divided_by_a_fixed_scale
        mp402/clean_sums_divided_by_the_scale_in_force mp402/clean_sums_unscaled_when_applied
        mp402/clean_two_ways mp402/clean_unknown_way mp402/clean_unscaled mp402/flagged_answer_kept
        mp402/flagged_clipped mp402/flagged_conditional mp402/flagged_conditional_in_a_class
        mp402/flagged_default_hook mp402/flagged_in_a_runner mp402/flagged_in_containers
        mp402/flagged_kept_in_variables mp402/flagged_listed_in_the_object mp402/flagged_loop
        mp402/flagged_mean_of_batches mp402/flagged_one_of_two_steps mp402/flagged_parameter
        mp402/flagged_strategy mp402/flagged_sums_in_variables mp402/flagged_train_step
        mp403/clean_divided_by_other_numbers mp403/clean_keras2 mp403/clean_loss_scale_factor
        mp403/clean_norm_is_logged mp403/clean_scaled_twice_divided_once mp403/flagged_initial_scale
        mp403/flagged_keras2_by_hand mp403/flagged_keras2_twice mp403/flagged_loss_scale_factor
        mp403/flagged_number mp403/flagged_parameter mp403/flagged_train_step mp404/clean_entered_again
        mp404/clean_entered_by_a_call mp404/clean_inside mp404/clean_reported_outside mp404/clean_unknown_tape
        mp404/flagged_asked_by_hasattr mp404/flagged_keras2_loop mp404/flagged_left_by_a_call
        mp404/flagged_loss_summed_in_a_loop mp404/flagged_two_tapes mp405/clean_asked_by_hasattr
        mp405/clean_by_hand mp405/clean_clips_where_nothing_is_scaled mp405/clean_decorated_method
        mp405/clean_inner_clips mp405/clean_keras2 mp405/clean_limit_is_scaled mp405/clean_norm_is_logged
        mp405/flagged_asked_by_hasattr mp405/flagged_behind_a_flag mp405/flagged_by_a_function
        mp405/flagged_by_hand mp405/flagged_by_hand_keras2 mp405/flagged_clips_behind_another_question
        mp405/flagged_decorated_method mp405/flagged_helper mp405/flagged_in_a_method mp405/flagged_in_a_trainer
        mp405/flagged_keras2 mp405/flagged_keras3_class mp405/flagged_norm_is_kept mp405/flagged_train_step
        mp406/clean_at_any_scale mp406/clean_divided_by_its_size mp406/clean_every_so_often
        mp406/clean_new_or_set_back mp406/clean_others_have_their_own_scale mp406/clean_put_down_to_be_logged
        mp406/clean_rows_of_a_table mp406/clean_set_back mp406/clean_unscaled_first mp406/flagged_average
        mp406/flagged_average_of_clipped mp406/flagged_kept_beside_built mp406/flagged_loop
        mp406/flagged_momentum_of_scaled mp406/flagged_never_set_back mp406/flagged_others_applied_each_time
        mp406/flagged_train_step mp406/flagged_variables_applied mp407/clean_keras2 mp407/clean_minimize_of_own
        mp408/clean_cast_up mp408/clean_float32_head mp408/clean_functional_of_an_own_class
        mp408/clean_loss_object_in_keras3 mp408/clean_policys_dtype mp408/flagged_beside_an_unscaled_loss
        mp408/flagged_features mp408/flagged_fixed_scale mp408/flagged_functional_of_an_own_class
        mp408/flagged_keras2 mp408/flagged_loop mp408/flagged_loss_scale_factor
        mp408/flagged_sum_in_the_policys_dtype mp408/flagged_sum_over_pixels mp408/flagged_test_that_trains
        mp408/flagged_where_the_policy_is_float16 mp409/clean_asked_not_to_scale mp409/clean_beside_the_norm
        mp409/clean_beside_unscaled_gradients mp409/clean_both_are_returned mp409/clean_divided_behind_replicas
        mp409/clean_divided_beside_the_gradients mp409/clean_kept_by_a_metric mp409/clean_kept_by_the_caller
        mp409/clean_kept_in_a_dict mp409/clean_of_each_example mp409/clean_own_metric mp409/clean_records
        mp409/clean_running_sum mp409/clean_says_so mp409/clean_through_functions mp409/clean_times_a_number
        mp409/clean_told_where_nothing_is_scaled mp409/clean_unscaled mp410/clean_already_unscaled
        mp410/clean_comprehension mp410/clean_each_its_own mp410/clean_kept_optimizer
        mp410/clean_list_of_optimizers mp410/clean_made_by_one_function mp410/clean_model_optimizer
        mp410/clean_other_name mp410/flagged_class mp410/flagged_comprehension mp410/flagged_gan
        mp410/flagged_made_by_one_function mp410/flagged_one_loss_for_two mp410/flagged_parameters
        mp410/flagged_unscaled_by_the_other mp411/clean_asks_whether_it_is_built mp411/clean_below_apply
        mp411/clean_built_before_fit mp411/clean_distributed mp411/flagged_above_apply
        mp411/flagged_several_losses mp412/clean_loss_is_checked mp412/clean_where_nothing_is_scaled
        mp412/flagged_gradients mp413/clean_dtype_of_an_option mp413/clean_float16_before_the_critic
        mp413/clean_float32_critic mp413/clean_layers_made_in_build mp413/clean_policy_behind_a_flag
        mp413/clean_scaled mp413/clean_side_by_side mp413/clean_unknown_target
        mp413/flagged_float16_inside_the_way mp413/flagged_float32_but_the_activation mp413/flagged_function
        mp413/flagged_in_one_function mp413/flagged_keras2 mp413/flagged_policy_behind_a_flag
        mp413/flagged_squared_in_place mp415/clean_apply_of_a_moving_average mp415/clean_chosen_strategy
        mp415/clean_fit_in_scope mp415/clean_run mp415/flagged_chosen_strategy mp415/flagged_reduced
        mp416/clean_dtype_asked mp416/clean_float32 mp416/clean_for_a_plot mp416/clean_scaled
        mp416/clean_unscaled_where_mixed mp416/clean_variable_dtype mp416/clean_variables_of_keras
        mp416/flagged_appended mp416/flagged_assigned_sum mp416/flagged_compute_dtype mp416/flagged_loop_keras2
        mp416/flagged_trainer mp416/flagged_unscaled_where_mixed mp416/flagged_variables_of_keras
        mp502/clean_angle_that_is_counted mp502/clean_outputs_spread_out mp502/clean_stopped_behind
        mp502/flagged_outputs_spread_out mp504/clean_float32_head mp504/clean_huber_keras2
        mp504/clean_key_that_is_chosen mp504/clean_lists_in_ops mp504/clean_losses_by_name
        mp504/clean_own_loss_in_float32 mp504/flagged_autoencoder mp504/flagged_cast_after_halving
        mp504/flagged_cross_entropies_of_ops mp504/flagged_key_of_a_functional_model
        mp504/flagged_loss_object_cast_afterwards mp504/flagged_losses_by_name mp504/flagged_losses_in_a_list
        mp504/flagged_losses_of_layers_added_keras2 mp504/flagged_outputs_by_key mp505/clean_a_term_of_the_loss
        mp505/clean_data_alone mp505/clean_one_of_two_outputs mp505/clean_weight_returned_by_a_layer
        mp505/flagged_a_term_of_the_loss mp505/flagged_data_alone mp505/flagged_in_a_train_step
        mp505/flagged_one_of_two_outputs mp505/flagged_sampling_between_two_models
        mp507/flagged_softmax_object_in_a_loop mp510/clean_outside_of_call mp603/clean_step_of_ones_own
        mp603/flagged_step_of_ones_own mp701/flagged_resumed_by_a_table
        mp117/clean_accumulating_loop mp401/clean_models_for_others mp505/flagged_functional_class_for_others
        mp505/clean_functional_class_for_others mp505/flagged_outputs_inside_outputs
        mp505/clean_outputs_inside_outputs mp410/flagged_applied_by_the_other
    """,
    "in_fields": """
        mp309/flagged_policy_asked_by_its_name
    """,
    "in_an_enumeration": """
        mp202/flagged_attention_helper mp309/flagged_policy_asked_by_its_name
         mp502/flagged_structured_settings
    """,
    "in_an_attribute_dict": """
        mp202/flagged_tables_by_lengths mp309/flagged_policy_asked_by_its_name
         mp409/clean_asked_not_to_scale
    """,
    "in_a_config_dict": """
        mp309/flagged_policy_asked_by_its_name
    """,
    "asked_of_a_dict": """
        mp107/clean_replaced_at_once mp216/flagged_argument_of_a_parser mp305/clean_passes_on_in_a_scope
    """,
    "put_together": """
        mp107/clean_replaced_at_once mp405/flagged_asked_by_hasattr
    """,
    "from_absl": """
        mp201/flagged_layers_taken_from_a_list
        mp503/clean_sums_within_their_range
        mp202/flagged_constant_put_into_shape
        mp701/flagged_layers_that_hand_on_their_policy
        mp701/flagged_h5_of_keras2
        mp204/flagged_metric_given_a_policy
        mp309/flagged_asked_under_bfloat16 mp309/flagged_asked_under_bfloat16_keras3 mp504/flagged_given_a_policy
        mp119/flagged_pictures
        mp104/flagged_failure_is_hidden
        mp119/flagged_cast mp119/flagged_inputs mp119/flagged_weights mp405/flagged_each_example_keras2
        mp102/clean_refused_where_removed mp104/clean_asked_of_its_object mp104/flagged_asked_of_the_settings
        mp104/flagged_default_that_nobody_asks_about mp105/clean_island_on_purpose mp105/clean_set_back
        mp106/clean_policy_chosen_by_a_dtype mp106/flagged_auto_scale_loss mp106/flagged_layer_policies
        mp106/flagged_model_calls_itself mp106/flagged_policy_put_back mp107/flagged_policy_object
        mp109/flagged_environment mp109/flagged_environment_keywords mp109/flagged_matched
        mp109/flagged_options_and_policy mp109/flagged_rewrite_and_policy_keras2 mp113/flagged_from_config
        mp113/flagged_json mp114/flagged_choice mp114/flagged_text mp115/clean_returned
        mp115/flagged_given_by_function mp115/flagged_handed_on_twice mp201/clean_made_by_a_metaclass
        mp201/clean_output_by_argument mp201/flagged_function_that_keeps_the_dtype
        mp201/flagged_made_by_a_metaclass mp201/flagged_policy_put_together
        mp202/flagged_number_first mp202/flagged_number_first_in_a_layer_alone mp202/flagged_resized
        mp210/clean_bytes mp210/clean_bytes_in_models mp214/flagged_bounded_rows
        mp214/flagged_numpy_function mp301/clean_unknown_optimizer mp309/flagged_bfloat16_loop
        mp309/flagged_float32 mp309/flagged_policy_asked_by_its_name mp309/flagged_read_for_its_scale
         mp310/flagged_default_of_an_argument
        mp311/flagged_assigned_or_by_class mp401/clean_functions_in_functions
        mp401/flagged_bfloat16_unscaled_all_the_same mp401/flagged_penalty_of_weights
        mp402/flagged_by_hand_in_a_class mp402/flagged_constant_tensor_by_hand mp402/flagged_mean_of_batches
        mp403/flagged_number mp405/flagged_by_hand mp405/flagged_by_hand_keras2 mp409/clean_asked_not_to_scale
        mp409/clean_kept_in_a_dict mp409/clean_own_metric mp409/clean_says_so mp409/clean_through_functions
        mp413/clean_dtype_of_an_option mp501/flagged_spellings mp502/flagged_epsilon_of_keras
        mp502/flagged_focal_loss_keras2 mp502/flagged_limits_of_float_types mp502/flagged_one_in_float32_too
        mp502/flagged_power_and_arc mp503/clean_few_numbers mp503/clean_short_rows
        mp504/flagged_cast_after_halving mp505/flagged_number_first mp505/flagged_number_first_in_a_step
        mp507/flagged_cast_behind_activation mp602/flagged_filled_with_words mp701/flagged_checkpoint
        mp701/flagged_command_of_a_parser mp701/flagged_compiled_again mp701/flagged_layers_made_in_a_loop
        mp701/flagged_new_model_on_its_layers mp701/flagged_part_of_another_model
        mp701/flagged_path_of_an_argument mp701/flagged_policy_put_back mp701/flagged_resumed_by_a_table
        mp701/flagged_resumed_run mp701/flagged_resumed_with_its_optimizer mp702/flagged_class
        mp702/flagged_inside_another_model mp702/flagged_policy_put_back mp702/flagged_under_a_manager
        mp704/flagged_concrete_functions
        mp121/flagged_layers_of_a_registry
    """,
    "arguments_of_fire": """
        mp201/flagged_layers_taken_from_a_list
        mp202/flagged_policy_of_a_settings_file
        mp701/flagged_h5_of_keras2
        mp309/flagged_asked_under_bfloat16
        mp104/flagged_failure_is_hidden
        mp119/flagged_inputs
        mp104/clean_asked_of_its_object mp104/flagged_asked_of_the_settings mp105/clean_island_on_purpose
        mp106/flagged_auto_scale_loss mp106/flagged_model_calls_itself mp106/flagged_policy_put_back
        mp109/flagged_environment mp109/flagged_environment_keywords mp109/flagged_matched
        mp109/flagged_rewrite_and_policy_keras2 mp113/flagged_json mp114/flagged_text
        mp115/clean_held_for_others mp115/clean_returned mp201/flagged_function_that_keeps_the_dtype
        mp201/flagged_made_by_a_metaclass mp210/clean_bytes mp210/clean_bytes_in_models
        mp301/clean_unknown_optimizer mp309/flagged_float32 mp310/flagged_default_of_an_argument
        mp311/flagged_assigned_or_by_class mp503/clean_few_numbers mp507/flagged_cast_behind_activation
        mp701/flagged_checkpoint mp701/flagged_compiled_again mp701/flagged_path_of_an_argument
        mp701/flagged_resumed_run mp702/flagged_inside_another_model mp702/flagged_policy_put_back
        mp702/flagged_under_a_manager
    """,
    "by_none": """
        mp202/flagged_lambda_of_a_models_class mp202/flagged_methods_that_keras_calls
        mp303/clean_second_argument mp402/flagged_by_hand_in_a_class mp403/flagged_initial_scale
        mp403/flagged_train_step mp406/flagged_average_of_clipped mp408/flagged_loss_scale_factor
        mp409/flagged_running_sum mp502/flagged_epsilon_of_keras mp502/flagged_focal_loss_keras2
        mp504/flagged_autoencoder mp504/flagged_cast_after_halving mp504/flagged_outputs_of_layers
        mp505/flagged_constant_in_compiled_loss_keras2 mp505/flagged_number_first
        mp505/flagged_number_first_in_a_step mp505/flagged_weights_in_one_arm mp202/flagged_activation_functions
    """,
    "methods_taken_from_functions": """
        mp104/flagged_kept_by_the_base_class mp201/flagged_made_by_a_metaclass
    """,
    "in_a_factory": """
        mp412/flagged_callback
    """,
    "in_settings_of_the_object": """
        mp502/flagged_called_many_times
    """,
    "functions_in_a_dict": """
        mp110/flagged_handler_of_its_own mp201/flagged_chained_stages
    """,
    "functions_by_name": """
        mp401/flagged_run_in_each_arm
        mp110/flagged_handler_of_its_own mp201/flagged_chained_stages mp409/flagged_beside_unscaled_gradients
    """,
    "as_callable_objects": """
        mp505/clean_labels_cast_by_name
        mp202/flagged_lambda_of_a_models_class
        mp214/flagged_wrapped_with_signature mp202/flagged_lambda_that_is_also_called
        mp202/flagged_output_of_a_lambda_layer
        mp401/flagged_run_in_each_arm
        mp106/flagged_jax mp110/flagged_handler_of_its_own mp118/flagged_executor mp118/flagged_option
        mp118/flagged_thread mp201/flagged_lambda_last mp201/flagged_run_by_fire mp202/flagged_lambda
        mp204/flagged_in_inner_functions mp207/flagged_loss
        mp208/flagged_made_by_a_function mp211/flagged_in_lambda_layers mp214/flagged_bounded_rows
        mp214/flagged_numpy_filters mp214/flagged_numpy_function mp214/flagged_numpys_own_dtype
        mp301/clean_asserted mp401/flagged_jax mp408/flagged_lambda_at_the_end mp409/flagged_of_a_replica
        mp504/flagged_compiled_with_own_loss_keras2 mp505/clean_loss_for_each_policy mp603/flagged_partial
        mp701/flagged_command_of_a_parser mp202/flagged_activation_functions
    """,
    "class_methods": """
        mp110/flagged_handler_of_its_own mp201/flagged_chained_stages mp204/flagged_in_inner_functions
        mp208/flagged_made_by_a_function mp301/clean_asserted mp501/flagged_method_taken_from_a_function
    """,
    "in_name_scopes": """
        mp202/flagged_decorator_tries_twice
        mp106/clean_float16_in_name mp211/flagged_decorated_call mp404/clean_entered_by_a_call
    """,
    "keywords_made_before": """
        mp119/clean_metrics mp204/flagged_metric_given_a_policy
        mp401/flagged_run_in_each_arm
        mp117/flagged_in_a_function mp204/flagged_metric_given_a_dtype
        mp502/flagged_smoothed_overlap
    """,
    "negated": """
        mp110/flagged_two_arms_of_one_try
    """,
    "imported_late": """
        mp110/flagged_handler_of_its_own
    """,
    "with_conditional_expressions": """
        mp401/flagged_run_in_each_arm
    """,
    "run_by_absl": """
        mp115/clean_held_for_others mp208/flagged_base_class mp411/flagged_unbuilt
    """,
}


WAYS = (*REWRITES, *STYLES, *CALLS, *OBJECTS, *SETTINGS, *STATEMENTS, *CONSTANTS, *DEFINITIONS)


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """A walk lets its garbage lie: of all programs in all ways it would be six gigabytes."""
    yield
    gc.collect()


@pytest.mark.parametrize("rewrite", WAYS, ids=lambda rewrite: rewrite.__name__)
def test_a_rewritten_fixture_gets_the_same_findings(rewrite: Callable[[ast.Module], bool], sample: Sample) -> None:
    known = NOT_FOLLOWED.get(rewrite.__name__, "").split()
    programs = [path for path in PROGRAMS if f"{path.parent.name}/{path.stem}" not in known]
    wrong = {path: said for path in sample(programs, 32) if (said := difference(path, rewrite))}
    assert not wrong
    followed = [name for name in known if not difference(FIXTURES / f"{name}.py", rewrite)]
    assert not followed, "the same is said now: take them off the list"


@pytest.mark.parametrize("rewrite", WAYS, ids=lambda rewrite: rewrite.__name__)
def test_it_rewrites(rewrite: Callable[[ast.Module], bool]) -> None:
    assert any(rewritten(path.read_text(encoding="utf-8"), rewrite) for path in PROGRAMS)


def difference(path: Path, rewrite: Callable[[ast.Module], bool]) -> str:
    """What is said of one program alone: of the one as it stands, or of the other."""
    text = path.read_text(encoding="utf-8")
    other, keras = rewritten(text, rewrite), marks_from_source(text).keras[0]
    if other is None or "mpdoctor: ignore" in text:
        return ""
    said = lines_and_codes(findings_in(facts_of(text, keras)))
    changed, lines = other
    now = lines_and_codes(findings_in(facts_of(changed, keras)))
    lost = {(line, code) for line, code in said if not any(code == c and line in lines[number] for number, c in now)}
    more = {code for _, code in now} - {code for _, code in said}
    return f"lost {sorted(lost)}, more {sorted(more)}" if lost or more else ""
