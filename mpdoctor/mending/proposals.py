"""The edits that a diagnosis proposes: the fixes of its findings, and remedies that were tried and healed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain, pairwise

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.location import line_in_cells
from mpdoctor.facts.model import OptimizerFacts
from mpdoctor.finding import Diagnosis, Edit, Finding
from mpdoctor.fixes.choices import Sources
from mpdoctor.knowledge.wrapper_api import LOSS_SCALE_FACTOR
from mpdoctor.mending.answers import Answer, Proposed
from mpdoctor.mending.draft import Proposal
from mpdoctor.mending.health import failing
from mpdoctor.mending.live_layers import LiveLayers, SourceAt
from mpdoctor.mending.seen_defects import (
    OF_RETURNED,
    cast_by_name_in_float32,
    kept_in_float32,
    mixed_operands_cast,
    numpy_given_float32,
    operation_kept_from_zero,
    repeated_steps_removed,
    returned_value_cast,
)
from mpdoctor.project.shown_paths import shown_path
from mpdoctor.semantics.live.scale_to_write import scale_to_write
from mpdoctor.semantics.source.edits.made.layers import MadeLayer, NoPlace
from mpdoctor.semantics.source.edits.made.optimizers import in_own_wrapper, usual_scale, with_scale
from mpdoctor.semantics.source.edits.own_calls import computed_in_float32
from mpdoctor.semantics.source.edits.policies import under_float32

# The loss is computed in 16 bits: it is not where the model's outputs are float32.
OF_THE_LOSS = ("MP408", "MP504")
# A layer's own numbers, of which float32 holds more.
OF_PRECISION = ("MP2", "MP5", "MP904", "MP905", "MP907")
# What the code of a layer's class is seen to compute, and float32 holds.
OF_OWN_NUMBERS = ("MP501", "MP502", "MP503", "MP512")
# What it is seen to compute, raises in 16 bits, and does not in float32.
OF_OWN_CODE = ("MP202", "MP205", "MP206", "MP211", "MP214", "MP217")
# In the evidence of a layer that refuses 16-bit input (MP219).
CLASS_MADE = "made_class"
MADE_UNDER = "made_under"  # the policy under which a layer was made that takes no dtype
# What a layer rounds because of the line that makes it.
OF_MADE_LAYERS = ("MP216",)
# What Keras' LossScaleOptimizer does wrong and mpdoctor.training's does right.
OF_THE_WRAPPER = ("MP302", "MP303", "MP315")
# The loss leaves that of float32, and some layers in float32 were seen to bring it back.
OF_DIVERGENCE = ("MP908",)
# The input does not fit into float16. One that learns from it needs other data, in float32 as well; but for those of
# Keras' that bring numbers of any size to one.
OF_THE_INPUT = ("MP601",)
NORMALIZING = ("BatchNormalization", "LayerNormalization", "GroupNormalization", "RMSNormalization")
# A model's output is 16-bit.
OF_OUTPUTS = ("MP201",)
# Gradients underflow: float32 has them, and at this loss scale they are 0 in float16.
OF_UNDERFLOW = ("MP906",)
TOO_SMALL = "scale_too_small"  # in the evidence of weights that never change (MP909)
# The loss scale is what the program says it is to be.
OF_THE_SCALE = ("MP902", "MP903", "MP905", "MP910", "MP911")


def proposals_from_diagnosis(diagnosis: Diagnosis, sources: Sources, has_own_wrapper: bool = False) -> Proposed:
    """The answers to all failing findings. `has_own_wrapper`: whether mpdoctor.training can be imported where the
    program runs."""
    answers: list[tuple[Answer, ...]] = []
    without: list[str] = []
    layers = {layer.path: layer for _, model in diagnosis.models for layer in model.layers}
    making = LiveLayers(layers, _by_any_path(sources))
    optimizers = [link for _, model in diagnosis.models for link in model.optimizer]

    def in_turn(finding: Finding) -> Iterator[Iterable[Answer]]:
        """The answers of each source. Those of later ones are made where the first that has any is no help."""
        yield chain(
            _healing_remedies(finding, making, without), _fix_of_rule(finding), _loss_in_float32(finding, making)
        )
        yield repeated_steps_removed(finding, optimizers, making.source_at)
        yield returned_value_cast(finding, making)
        yield mixed_operands_cast(finding, making.source_at)
        yield numpy_given_float32(finding, making.source_at)
        yield kept_in_float32(finding, making.source_at)
        yield chain(
            cast_by_name_in_float32(finding, diagnosis, making.source_at),
            operation_kept_from_zero(finding, diagnosis, making.source_at),
        )
        yield _scale_against_underflow(finding, diagnosis, making)
        yield _float32_against_divergence(finding, making)
        yield _usual_scales(finding, optimizers, making.source_at)
        yield _made_under_float32(finding, making.source_at)
        yield _float32_for_precision(finding, making)
        yield _own_layers_in_float32(finding, making)
        yield _refusing_layer_in_float32(finding, making)

    for finding in (_in_all_cells(finding, sources) for finding in failing(diagnosis)):
        of_kinds: list[tuple[Answer, ...]] = [kind for kind in map(tuple, in_turn(finding)) if kind]
        first = of_kinds[0] if of_kinds else ()
        if not first and has_own_wrapper:
            first = tuple(_own_wrapper(finding, diagnosis, making.source_at))
        if first:
            answers.append((*first, *(replace(one, is_last=True) for kind in of_kinds[1:] for one in kind)))
    return Proposed(tuple(answers), tuple(dict.fromkeys(without)))


def _in_all_cells(finding: Finding, sources: Sources) -> Finding:
    """The finding with its line counted as facts count it: over all cells of its notebook."""
    place = finding.location
    cells = sources[place.path].cells if place is not None and place.cell and place.path in sources else ()
    if place is None or not cells:
        return finding
    before = dict(cells)[place.cell] - 1
    line, end_line = line_in_cells(place.line + before, cells), place.end_line and place.end_line + before
    return replace(finding, location=replace(place, line=line, end_line=end_line, cell=0))


def _fix_of_rule(finding: Finding) -> Iterator[Answer]:
    if finding.fix is not None:
        fix = finding.fix
        yield Answer(finding, (Proposal(fix.title, fix.safe, finding.code, fix.edits),))


def _healing_remedies(finding: Finding, making: LiveLayers, without: list[str]) -> Iterator[Answer]:
    for remedy in finding.remedies:
        if remedy.tried != "healed" or remedy.kind == "smaller-scale":  # of the scale, see below
            continue
        try:
            yield Answer(finding, tuple(making.proposals(finding.code, remedy)), from_trial=True)
        except NoPlace as reason:
            without.append(str(reason))


def _loss_in_float32(finding: Finding, making: LiveLayers) -> Iterator[Answer]:
    if finding.code in OF_THE_LOSS and finding.fix is None:
        with suppress(NoPlace):  # what else is proposed stands for itself
            yield Answer(finding, tuple(making.outputs_in_float32(finding.code)))


def _scale_against_underflow(finding: Finding, diagnosis: Diagnosis, making: LiveLayers) -> Iterator[Answer]:
    """The loss scale at which the gradients of the batches tried are neither lost nor infinite; where there is none,
    float32 for the layer at which they are lost."""
    if finding.code not in OF_UNDERFLOW:
        return
    for training in (probe.training for probe in diagnosis.probes if probe.training.model.id == finding.model):
        to_write, reference = scale_to_write(training), training.reference
        if to_write is None:
            if reference is not None and reference.room is not None and reference.room.is_empty:
                yield from _layer_in_float32(finding, making)
            continue
        for link in training.model.optimizer:
            facts = making.source_at(link.made_at.path) if link.made_at is not None else None
            has_argument = link.is_wrapper is not (to_write.argument == LOSS_SCALE_FACTOR)
            if facts is None or link.made_at is None or link.wrapped_by_compile or not has_argument:
                continue
            titled_edits = with_scale(facts, link.made_at, link.class_name, to_write.argument, to_write.text)
            if titled_edits is not None:
                title, edits = titled_edits
                yield Answer(finding, (Proposal(title, safe=False, code=finding.code, edits=edits),))


def _float32_against_divergence(finding: Finding, making: LiveLayers) -> Iterator[Answer]:
    """Float32 for the layers with which the loss was seen to be that of float32."""
    healing = finding.evidence.get("healing_layers") if finding.code in OF_DIVERGENCE else None
    paths = healing if isinstance(healing, list) else []
    if paths and all(path in making.layers for path in paths):
        with suppress(NoPlace):
            yield Answer(finding, tuple(making.in_float32(finding.code, path) for path in paths))


def _usual_scales(finding: Finding, optimizers: list[OptimizerFacts], source_at: SourceAt) -> Iterator[Answer]:
    if finding.code not in OF_THE_SCALE and finding.evidence.get(TOO_SMALL) is not True:
        return
    proposals: dict[Edit, Proposal] = {}
    for link in optimizers:
        facts = source_at(link.made_at.path) if link.made_at is not None else None
        if facts is not None and link.made_at is not None:
            for title, edit in usual_scale(facts, link.made_at, _tried_scale(finding)):
                proposals.setdefault(edit, Proposal(title, safe=False, code=finding.code, edits=(edit,)))
    if proposals:
        yield Answer(finding, tuple(proposals.values()))


def _tried_scale(finding: Finding) -> float | None:
    """A smaller fixed scale with which the batches were finite."""
    return next((remedy.scale for remedy in finding.remedies if remedy.tried == "healed" and remedy.scale), None)


def _float32_for_precision(finding: Finding, making: LiveLayers) -> Iterator[Answer]:
    """The layer that was seen to have the defect in float32; then all that hold it, too. Not where that was tried."""
    prepares = finding.code in OF_THE_INPUT and _prepares(making.layers.get(finding.layer or ""))
    is_of_precision = finding.code.startswith(OF_PRECISION) and finding.code not in OF_RETURNED
    if _is_of_source_alone(finding) or not (prepares or is_of_precision):
        return
    if any(remedy.tried == "failed" for remedy in finding.remedies):
        return
    yield from _layer_in_float32(finding, making)
    if finding.layer not in making.layers and finding.location is not None:  # no model came
        with suppress(NoPlace):
            proposals = tuple(making.class_in_float32(finding.code, finding.location))
            if proposals:
                yield Answer(finding, _for_own_code(finding, proposals, making))


def _is_of_source_alone(finding: Finding) -> bool:
    """Whether no running program showed it, or its line has the say. An output that an own layer computes (MP201) is
    told on the line that computes it, and mended where the layer is made."""
    return finding.stage == "source" and not (finding.code in OF_OUTPUTS and finding.layer is not None)


def _prepares(layer: LayerFacts | None) -> bool:
    """Whether it computes something of the input and learns nothing (`Lambda`, `Rescaling`, `Normalization`), or brings
    it to one size."""
    if layer is None or layer.is_model:
        return False
    return not layer.has_trainable_weights or (layer.class_name in NORMALIZING and not layer.own_class)


def _layer_in_float32(finding: Finding, making: LiveLayers) -> Iterator[Answer]:
    """The answers that compute the layer of a finding in float32: the layer alone; then with the layers that hold
    it."""
    for paths in making.ways_to(finding.layer or ""):
        with suppress(NoPlace):
            yield Answer(finding, tuple(making.in_float32(finding.code, path) for path in paths))


def _own_layers_in_float32(finding: Finding, making: LiveLayers) -> Iterator[Answer]:
    """float32 for all half-precision layers of the class whose code holds the finding, or that the call at the finding
    makes."""
    place = finding.location
    if finding.stage != "source" or place is None or finding.code not in OF_OWN_NUMBERS + OF_OWN_CODE + OF_MADE_LAYERS:
        return
    facts = making.source_at(place.path) if finding.code in OF_OWN_CODE else None
    inside = computed_in_float32(facts, place.line) if facts is not None else None
    if inside is not None:
        yield Answer(finding, (Proposal(inside[0], safe=False, code=finding.code, edits=inside[1]),))
    paths = making.made_by_call(place) if finding.code in OF_MADE_LAYERS else making.made_of_class(place)
    with suppress(NoPlace):
        proposals = tuple(making.in_float32(finding.code, path) for path in paths)
        if not proposals and finding.code in OF_OWN_CODE:  # no model came
            proposals = tuple(making.class_in_float32(finding.code, place))
        if proposals:
            yield Answer(finding, _for_own_code(finding, proposals, making))


def _for_own_code(finding: Finding, proposals: tuple[Proposal, ...], making: LiveLayers) -> tuple[Proposal, ...]:
    """The proposals, which say where the code of a class alone has to compute in float32."""
    own = making.class_around(finding.location) if finding.code in OF_OWN_CODE and finding.location else ""
    return tuple(replace(proposal, own_code_of=own) for proposal in proposals)


def _refusing_layer_in_float32(finding: Finding, making: LiveLayers) -> Iterator[Answer]:
    """float32 for a library's layer that raised on 16-bit input while the model was made, so that no model came."""
    made_class, place = finding.evidence.get(CLASS_MADE), finding.location
    if finding.layer in making.layers or finding.layer is None or place is None or not isinstance(made_class, str):
        return
    with suppress(NoPlace):
        yield Answer(finding, (making.made_in_float32(finding.code, MadeLayer(finding.layer, made_class, place)),))


def _made_under_float32(finding: Finding, source_at: SourceAt) -> Iterator[Answer]:
    """The policy float32 while a library's layer is made that refuses 16-bit input and takes no dtype."""
    policy, place = finding.evidence.get(MADE_UNDER), finding.location
    facts = source_at(place.path) if place is not None and isinstance(policy, str) else None
    edits = under_float32(facts, place, str(policy)) if facts is not None and place is not None else ()
    if edits:
        title = "Make the layer under the policy float32"
        yield Answer(finding, (Proposal(title, safe=False, code=finding.code, edits=edits),))


def _own_wrapper(finding: Finding, diagnosis: Diagnosis, source_at: SourceAt) -> Iterator[Answer]:
    """mpdoctor.training's LossScaleOptimizer where Keras' own is at fault, and nothing else is known to help."""
    if finding.code not in OF_THE_WRAPPER:
        return
    proposals: dict[tuple[Edit, ...], Proposal] = {}
    for _, model in diagnosis.models:
        for link, inside in pairwise(model.optimizer) if model.keras.is_keras3 else ():  # in Keras 2 it was not tried
            made = inside if link.wrapped_by_compile else link
            facts = source_at(made.made_at.path) if link.is_wrapper and made.made_at is not None else None
            if facts is not None and made.made_at is not None:
                edits = in_own_wrapper(facts, made.made_at, made.class_name, made is link)
                if edits:
                    proposals[edits] = Proposal(
                        "Scale with mpdoctor.training", safe=False, code=finding.code, edits=edits
                    )
    if proposals:
        yield Answer(finding, tuple(proposals.values()))


def _by_any_path(sources: Sources) -> SourceAt:
    """A running program names files by their absolute paths, a report as it shows them."""
    return lambda path: sources.get(path) or sources.get(shown_path(path))
