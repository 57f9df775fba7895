"""Of a program that is written in another way, and does the same, the same is said."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from judging import facts_of, findings_in, lines_and_codes
from marks import marks_from_source
from rewrites import REWRITES, rewritten
from rewrites_of_calls import CALLS
from rewrites_of_style import STYLES
from sampling import Sample

pytestmark = pytest.mark.fast

FIXTURES = Path(__file__).parents[2] / "fixtures" / "rules"
ABOUT_TEXT = ("mp001", "mp005")  # rules about what no rewrite leaves as it is
PROGRAMS = [path for path in sorted(FIXTURES.glob("*/*.py")) if path.parent.name not in ABOUT_TEXT]
NOT_FOLLOWED = {  # fixtures of which something else is said, by the rewrite
    "configured": """
        mp309/flagged_policy_asked_by_its_name mp310/flagged_asked_of_the_settings
        mp410/clean_made_by_one_function
    """,
    "decorated": """
        mp409/flagged_beside_unscaled_gradients
    """,
    "in_a_class": """
        mp115/flagged_never_set mp115/flagged_shown_as_text mp116/flagged_never_used
        mp306/flagged_factory_methods mp315/clean_only_evaluates mp415/flagged_method_named_run
        mp701/clean_resumed_to_predict mp701/flagged_resumed_by_a_table
    """,
    "in_helpers": """
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
        mp409/flagged_kept_by_a_metric mp409/flagged_methods mp410/flagged_made_by_one_function
        mp412/flagged_callback mp503/clean_sums_in_tests mp701/flagged_command_of_a_parser
        mp701/flagged_resumed_by_a_table
    """,
    "in_inner_functions": """
        mp104/clean_each_dtype_in_its_arm mp105/flagged_in_a_method_of_a_library mp106/clean_float16_in_name
        mp110/flagged_handler_of_its_own mp110/flagged_memory_growth mp201/clean_output_by_argument
        mp201/flagged_own_train_step mp202/flagged_made_from_its_config
        mp207/flagged_made_from_its_config mp208/flagged_base_class mp208/flagged_made_by_a_function
        mp211/flagged_decorated_call mp213/clean_cloned_backbone_keras2 mp216/flagged_in_own_layer
        mp301/clean_asserted mp304/clean_wrapping_optimizer mp410/flagged_made_by_one_function
        mp503/clean_sum_to_be_saved mp503/clean_sums_in_tests
    """,
    "in_main": """
        mp115/clean_held_for_others mp208/flagged_base_class mp411/flagged_unbuilt
    """,
    "in_parts": """
        mp505/flagged_a_term_of_the_loss
    """,
    "kept_in_self": """
        mp306/flagged_setting_asked_everywhere
        mp110/flagged_handler_of_its_own mp116/flagged_never_used mp201/flagged_chained_stages
        mp202/clean_carried_through_a_loop mp202/clean_dtype_in_a_named_dictionary mp306/flagged_in_turn
        mp406/clean_others_have_their_own_scale mp409/flagged_kept_by_a_metric mp413/flagged_class
        mp413/flagged_policy_behind_a_flag mp502/clean_angle_that_is_counted mp502/clean_stopped_behind
    """,
    "mixed_in": """
        mp104/flagged_method_of_an_enumeration mp203/flagged_linear_from_the_guide mp212/flagged_state_given_back
    """,
    "renamed": """
        mp115/clean_held_for_others mp116/clean_used_elsewhere
    """,
    "annotated": """
        mp211/flagged_decorated_call
    """,
    "appended": """
        mp502/flagged_smoothed_overlap mp512/flagged_through_own_layers
    """,
    "added_one_by_one": """
        mp106/clean_float16_in_name mp512/flagged_through_own_layers
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
        mp114/flagged_text
    """,
    "registered": """
        mp413/flagged_policy_behind_a_flag
    """,
    "in_a_table": """
        mp310/flagged_asked_of_the_settings mp311/flagged_settings_of_an_experiment
        mp410/clean_made_by_one_function
    """,
    "in_class_attributes": """
        mp202/flagged_attention_helper mp309/flagged_policy_asked_by_its_name
        mp310/flagged_asked_of_the_settings mp410/clean_made_by_one_function
        mp502/flagged_structured_settings
    """,
    "inlined": """
        mp115/flagged_given_by_function
    """,
    "methods_by_name": """
        mp110/flagged_handler_of_its_own mp110/flagged_pass_in_function mp201/flagged_list_of_layers
        mp301/flagged_inherited_method mp303/flagged_behind_a_flag mp303/flagged_callback
        mp303/flagged_classic mp303/flagged_compiled mp303/flagged_function mp410/flagged_class
        mp410/flagged_gan mp410/flagged_made_by_one_function mp410/flagged_one_loss_for_two
        mp410/flagged_parameters mp410/flagged_unscaled_by_the_other
    """,
    "methods_of_an_object": """
        mp201/flagged_chained_stages mp204/flagged_in_inner_functions mp208/flagged_made_by_a_function
        mp301/clean_asserted
    """,
    "starred": """
        mp409/flagged_kept_in_a_dict
    """,
    "static_methods": """
        mp110/flagged_handler_of_its_own mp201/flagged_chained_stages mp204/flagged_in_inner_functions
        mp208/flagged_made_by_a_function mp301/clean_asserted
    """,
    "subclassed": """
        mp106/flagged_behind_another_layer mp107/flagged_own_layer_by_itself mp201/flagged_made_by_a_metaclass
        mp212/flagged_state_given_back mp312/flagged_own_compile
    """,
    "unpacked": """
        mp116/flagged_never_used mp211/flagged_decorated_call
    """,
    "by_options": """
        mp204/flagged_metric_given_a_dtype
    """,
}
WAYS = (*REWRITES, *STYLES, *CALLS)


@pytest.mark.parametrize("rewrite", WAYS, ids=lambda rewrite: rewrite.__name__)
def test_a_rewritten_fixture_gets_the_same_findings(rewrite: Callable[[ast.Module], bool], sample: Sample) -> None:
    known = NOT_FOLLOWED.get(rewrite.__name__, "").split()
    programs = [path for path in PROGRAMS if f"{path.parent.name}/{path.stem}" not in known]
    wrong = {path: said for path in sample(programs, 60) if (said := difference(path, rewrite))}
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
