"""What the graph of a SavedModel would do is told before any of it is loaded; what is loaded is what was told."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from checking import Check, check, contents, needs_keras
from environments import ENVIRONMENTS, Environment, needs_environment
from test_confinement import needs_landlock
from walls import ALLOW_LIST, CONFINEMENT, check_without

from mpdoctor.examiner.endings import with_own_path
from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.protocol.request import Request
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.knowledge.allow_lists.computing_ops import (
    COMPUTING,
    PRINTS,
    READS_VOCABULARY,
    SAVING,
    effect_of_operation,
)

MAKER = Path(__file__).parents[2] / "support" / "saved_graphs.py"
slow = pytest.mark.slow
needs_tf_keras = needs_keras("tf_keras")


def words(text: str) -> list[str]:
    return text.split()


# --- the list -------------------------------------------------------------------------------------------------------
# Written down apart from the list, from TensorFlow's own documentation of what reaches out of a graph.
REACHING_OUT = words(
    """
    WriteFile ReadFile MatchingFiles PrintV2 Print Save SaveSlices SaveV2 Restore RestoreSlice RestoreV2
    MergeV2Checkpoints ShardedFilename ShardedFilespec DistributedSave LoadAndRemapMatrix GenerateVocabRemapping
    InitializeTableFromTextFile InitializeTableFromTextFileV2 InitializeTableFromDataset ImmutableConst
    FixedUnigramCandidateSampler DecodeProtoV2 EncodeProto FileSystemSetConfiguration RecordInput WholeFileReader
    WholeFileReaderV2 TextLineReader TextLineReaderV2 TFRecordReader TFRecordReaderV2 IdentityReader
    FixedLengthRecordReader FixedLengthRecordReaderV2 LMDBReader ReaderReadV2 ReaderRestoreStateV2 TextLineDataset
    TFRecordDataset TFRecordDatasetV2 FixedLengthRecordDataset FixedLengthRecordDatasetV2 CSVDataset CSVDatasetV2
    SqlDataset LMDBDataset MatchingFilesDataset ExperimentalMatchingFilesDataset DatasetToTFRecord SaveDataset
    SaveDatasetV2 LoadDataset SnapshotDataset SnapshotDatasetV2 SnapshotDatasetReader CacheDataset CacheDatasetV2
    ListSnapshotChunksDataset SnapshotChunkDataset DataServiceDataset DataServiceDatasetV4 GeneratorDataset
    RegisterDataset RegisterDatasetV2 DatasetFromGraph OneShotIterator AnonymousIterator IteratorFromStringHandle
    PyFunc PyFuncStateless EagerPyFunc RemoteCall Send Recv RpcCall TryRpc CollectiveReduceV2 CollectiveBcastRecv
    NcclAllReduce ConfigureDistributedTPU TPUPartitionedCall WorkerHeartbeat CreateSummaryFileWriter
    CreateSummaryDbWriter SummaryWriter WriteSummary WriteRawProtoSummary WriteGraphSummary WriteScalarSummary
    WriteHistogramSummary WriteImageSummary WriteAudioSummary FlushSummaryWriter ImportEvent
    StatsAggregatorSetSummaryWriter ScalarSummary MergeSummary DebugIdentity DebugIdentityV2 DebugIdentityV3
    DebugNanCount DebugNumericSummary DebugNumericSummaryV2 CopyHost XlaCustomCall XlaCustomCallV2 XlaCallModule
    XlaHostCompute XlaSendToHost XlaLaunch _XlaRun DecodeCompressed DecodePng DecodeJpeg DecodeGif DecodeBmp
    DecodeImage DecodeWebP DecodeJxl DecodeAndCropJpeg DecodeWav ExtractJpegShape ParseTensor DeserializeIterator
    BoostedTreesDeserializeEnsemble Abort GetSessionHandleV2 Stage Barrier FIFOQueueV2 PythonOp LoadLibrary
    BatchFunction
    """
)
SUSPICIOUS = re.compile(
    r"File|Write|Read|Py[A-Z]|Save|Restore|Checkpoint|Dataset|Record|Rpc|Print|Debug|Summary|Remap|Immutable|Xla|Remote"
    r"|Send|Recv|Collective|Nccl|TPU|Stage|Queue|Session|Library|Host|Proto|Compressed|Png|Jpeg|Gif|Image|Wav|Python"
    r"|Iterator"
)
HARMLESS = words(
    """
    ReadVariableOp TensorArrayReadV3 TensorArrayWriteV3 RngReadAndSkip ExtractImagePatches
    ImageProjectiveTransformV2 ImageProjectiveTransformV3 CropAndResizeGradImage IteratorGetNext DisableCopyOnRead
    """
)


@pytest.mark.parametrize("op", REACHING_OUT)
def test_what_reaches_out_of_a_graph_is_not_on_the_list(op: str) -> None:
    assert op not in COMPUTING


def test_a_name_that_sounds_like_it_has_been_looked_at() -> None:
    assert {op for op in COMPUTING if SUSPICIOUS.search(op)} == set(HARMLESS)


def test_the_list_is_in_order_and_holds_what_a_model_needs() -> None:
    source = Path(sys.modules["mpdoctor.knowledge.allow_lists.computing_ops"].__file__).read_text()
    listed = source.partition(' words(\n    """')[2].partition('"""')[0].split()
    assert listed == sorted(set(listed)) and set(listed) == COMPUTING
    assert not COMPUTING & {*SAVING, READS_VOCABULARY, PRINTS}


@pytest.mark.parametrize(
    ("op", "said"),
    [
        ("WriteFile", "writes a file"),
        ("PyFuncStateless", "calls Python"),
        ("TFRecordDatasetV2", "read files"),
        ("CreateSummaryFileWriter", "writes files"),
        ("DecodeJpeg", "decodes"),
        ("Addons>Unheard", ""),
    ],
)
def test_what_one_does_is_said_where_it_is_known(op: str, said: str) -> None:
    assert said in effect_of_operation(op)


# --- models ---------------------------------------------------------------------------------------------------------
def made(folder: Path, python: str) -> dict[str, str]:
    done = subprocess.run([python, str(MAKER), str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of models, with why each is refused in told.json."""
    folder = tmp_path_factory.mktemp("graphs")
    (folder / "told.json").write_text(json.dumps(made(folder, sys.executable)))
    return folder


def assert_judged(told: dict[str, str]) -> None:
    assert len(told) >= 34
    for name, reason in told.items():
        assert bool(reason) == name.startswith("bad_"), f"{name}: {reason or 'not refused'}"
        assert "\n" not in reason
        assert name in reason or not reason


WORDS = {
    "bad_write": "WriteFile",
    "bad_initializer": "_initializer",
    "bad_branch": "cond_true",
    "bad_case": "branch0",
    "bad_second_graph": "WriteFile",
    "bad_first_graph": "WriteFile",
    "bad_print": "prints to a file",
    "bad_python": "EagerPyFunc",
    "bad_vocabulary": "none of the model's assets",
    "bad_saver_of_all": "_traced_save",
    "bad_unknown": "Addons>Unheard",
    "bad_asset_name_0": "'../../secret.txt'",
    "bad_asset_link": "a link that leads out",
    "bad_variables_link": "a link that leads out",
    "bad_pipe": "no regular file",
}


@slow
@slow
@needs_tf_keras
def test_hostile_graphs_are_refused_and_healthy_ones_are_not(graphs: Path) -> None:
    told = json.loads((graphs / "told.json").read_text())
    assert_judged(told)
    for name, said in WORDS.items():
        assert said in told[name], (name, told[name])
    assert not list((graphs / "written").iterdir())


@pytest.mark.environments
@pytest.mark.parametrize(
    "environment",
    [
        pytest.param(environment, id=environment.keras, marks=needs_environment(environment))
        for environment in ENVIRONMENTS
        if environment.python is not None
    ],
)
def test_older_tensorflows_write_what_is_judged_alike(environment: Environment, tmp_path: Path) -> None:
    assert_judged(made(tmp_path, str(environment.python)))
    done = environment.check("good_vocabulary", "--steps", "10", directory=tmp_path)
    assert done.exit_code == 0 and done.report["probes"], str(done)
    refused = environment.check("bad_initializer", directory=tmp_path)
    assert_refused(refused, "WriteFile")
    assert not list((tmp_path / "written").iterdir())


@slow
@needs_tf_keras
def test_what_is_loaded_is_what_was_judged(graphs: Path, tmp_path: Path) -> None:
    """One graph, without what only the outermost graph calls, and files that nobody can take away any more."""
    from tensorflow.core.protobuf import saved_model_pb2

    from mpdoctor.examiner.saved.directories import saved_directory_from_path
    from mpdoctor.examiner.saved.judged_graph_copies import judged_copy

    copy = Path(judged_copy(saved_directory_from_path(str(graphs / "bad_second_graph")), str(tmp_path)))
    assert copy.name == "bad_second_graph"
    assert {path.name for path in copy.iterdir()} >= {"saved_model.pb", "variables"} and not list(copy.glob("finger*"))
    assert not [path for path in copy.rglob("*") if path.is_symlink()]
    index = graphs / "bad_second_graph" / "variables" / "variables.index"
    assert (copy / "variables" / index.name).read_bytes() == index.read_bytes()
    (kept,) = saved_model_pb2.SavedModel.FromString((copy / "saved_model.pb").read_bytes()).meta_graphs
    ops = {node.op for function in kept.graph_def.library.function for node in function.node_def}
    assert "MatMul" in ops and not ops & {"WriteFile", *SAVING}
    assert {node.op for node in kept.graph_def.node} <= {"Const"}


@slow
@needs_tf_keras
@pytest.mark.parametrize("large", [False, True])
def test_a_file_that_is_swapped_after_it_was_judged_is_not_loaded(
    graphs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    """The vocabulary becomes a link to another file: it is refused before the copy is made, and no loss after it."""
    from mpdoctor.examiner.saved import judged_graph_copies
    from mpdoctor.examiner.saved.directories import saved_directory_from_path

    if large:
        monkeypatch.setattr(judged_graph_copies, "LARGEST_COPY", -1)
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    model = tmp_path / "model"
    shutil.copytree(graphs / "good_vocabulary", model)
    directory = saved_directory_from_path(str(model))
    copy = Path(judged_graph_copies.judged_copy(directory, str(tmp_path / "first")))
    (asset,) = (model / "assets").iterdir()
    before = asset.read_text()
    asset.unlink()
    asset.symlink_to(secret)
    assert (copy / "assets" / asset.name).read_text() == before
    with pytest.raises(Unusable, match="is a link that leads out of model"):
        judged_graph_copies.judged_copy(directory, str(tmp_path / "second"))


@pytest.mark.parametrize("name", ["saved_model.pb", "keras_metadata.pb"])
@slow
@needs_tf_keras
def test_what_is_read_first_is_no_link_that_leads_out(
    graphs: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it opened, which may already do something to a device."""
    from mpdoctor.examiner.saved import own_files
    from mpdoctor.examiner.saved.directories import saved_directory_from_path

    model = tmp_path / "model"
    shutil.copytree(graphs / "good_vocabulary", model)
    (model / name).rename(tmp_path / name)
    (model / name).symlink_to(tmp_path / name)
    opened = []

    def noted(path: Any, *given: Any) -> int:
        opened.append(Path(path).name)
        return os.open(path, *given)

    monkeypatch.setattr(own_files, "os", SimpleNamespace(**{**vars(os), "open": noted}))
    with pytest.raises(Unusable, match=f"model/{name} is a link that leads out of model"):
        saved_directory_from_path(str(model))
    assert name not in opened


@needs_tf_keras
@pytest.mark.parametrize("handed", ["asset", "variable"])
def test_a_name_that_is_handed_on_a_thousand_ways_is_followed_in_no_time(handed: str) -> None:
    """Sixty functions, each of which calls the next one twice."""
    from tensorflow.core.protobuf import meta_graph_pb2

    from mpdoctor.examiner.saved.refused_operations import _forbidden

    graph = meta_graph_pb2.MetaGraphDef()
    getattr(graph.object_graph_def.nodes.add(), handed).SetInParent()
    graph.object_graph_def.concrete_functions["f0"].bound_inputs.append(0)
    for number in range(60):
        function = graph.graph_def.library.function.add()
        function.signature.name = f"f{number}"
        function.signature.input_arg.add(name="file")
        function.node_def.add(name="same", op="Identity", input=["file"])
        for call in ("once", "twice") if number < 59 else ():
            node = function.node_def.add(name=call, op="StatefulPartitionedCall", input=["same:output:0"])
            node.attr["f"].func.name = f"f{number + 1}"
    function.node_def.add(name="read", op=READS_VOCABULARY, input=["same:output:0", "same:output:0"])
    assert [node.name for node, _ in _forbidden(graph)] == ([] if handed == "asset" else ["read"])


@needs_tf_keras
@pytest.mark.parametrize(
    "op", ["StatefulPartitionedCall", "PartitionedCall", "While", "StatefulPartitionedCall handed on"]
)
def test_a_reader_of_files_is_found_wherever_it_is_named(op: str) -> None:
    """It belongs to an asset, and another function hands it a name of its own."""
    from tensorflow.core.protobuf import meta_graph_pb2

    from mpdoctor.examiner.saved.refused_operations import _forbidden

    graph = meta_graph_pb2.MetaGraphDef()
    graph.object_graph_def.nodes.add().asset.SetInParent()
    graph.object_graph_def.concrete_functions["reader"].bound_inputs.append(0)
    reader, caller = graph.graph_def.library.function.add(), graph.graph_def.library.function.add()
    reader.signature.name, caller.signature.name = "reader", "caller"
    reader.signature.input_arg.add(name="file")
    reader.node_def.add(name="read", op=READS_VOCABULARY, input=["file", "file"])
    assert not list(_forbidden(graph))
    caller.node_def.add(name="secret", op="Const")
    call = caller.node_def.add(name="call", op=op.split()[0], input=["secret:output:0"]).attr["f"].func
    if op.endswith("on"):
        call.name, call = "caller", call.attr["given"].func
    call.name = "reader"
    assert [node.name for node, _ in _forbidden(graph)] == ["read"]


def test_an_error_about_the_copy_names_the_users_own_path() -> None:
    request = Request("saved-model", "/home/me/model", None, None, (), "/tmp/mpdoctor-1/events.jsonl")
    raised = FailureFacts("raised", "loading", message=f"no files match {request.judged}/model/variables/variables")
    assert with_own_path(request, raised).message == "no files match /home/me/model/variables/variables"


@pytest.mark.parametrize(("kind", "said"), [("pipe", "no regular file"), ("huge", "600,000,000 bytes")])
@needs_tf_keras
def test_a_graph_that_cannot_be_one_is_not_read(tmp_path: Path, kind: str, said: str) -> None:
    from mpdoctor.examiner.saved.directories import saved_directory_from_path

    path = tmp_path / "model" / "saved_model.pb"
    path.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.touch()
        os.truncate(path, 600_000_000)
    with pytest.raises(Unusable, match=said):
        saved_directory_from_path(str(path.parent))


# --- live -----------------------------------------------------------------------------------------------------------
def assert_refused(done: Check, said: str) -> None:
    assert (done.exit_code, done.codes()) == (2, ["MP002"]), str(done)
    assert said in done.finding("MP002")["message"] and "--allow-code-in-file" in done.finding("MP002")["help"]


@slow
@needs_tf_keras
def test_a_check_refuses_in_one_sentence(graphs: Path) -> None:
    before = contents(graphs)
    assert_refused(check("bad_initializer", directory=graphs, keras="tf_keras"), "WriteFile")
    assert contents(graphs) == before


@needs_tf_keras
@slow
@pytest.mark.parametrize(
    "name", ["good_vocabulary", "good_vocabulary_again", "good_loop", "good_strings", "good_print"]
)
def test_healthy_graphs_are_trained(graphs: Path, name: str) -> None:
    done = check(name, "--steps", "10", directory=graphs, keras="tf_keras")
    assert (done.codes(), done.exit_code) == ([], 0), str(done)
    assert done.report["probes"][0]["steps"] == 10


@needs_tf_keras
@slow
def test_a_model_of_texts_is_examined_and_not_trained(graphs: Path) -> None:
    done = check("good_text", directory=graphs, keras="tf_keras")
    assert (done.codes(), done.exit_code) == ([], 0), str(done)
    assert "takes strings" in done.report["targets"][0]["stages"]["training"]["reason"]


@needs_tf_keras
@needs_landlock
@slow
@pytest.mark.parametrize("name", ["bad_write", "bad_initializer", "bad_print", "bad_saver"])
def test_the_second_wall_alone_lets_nothing_be_written(graphs: Path, name: str) -> None:
    done = check_without(ALLOW_LIST, name, "--steps", "2", directory=graphs, keras="tf_keras")
    assert done.exit_code in (0, 1, 2) and "holds the operation" not in done.said, str(done)
    assert not list((graphs / "written").iterdir())


@needs_tf_keras
@needs_landlock
@slow
def test_the_second_wall_stands_where_code_is_allowed(graphs: Path) -> None:
    done = check("bad_initializer", "--allow-code-in-file", "--steps", "2", directory=graphs, keras="tf_keras")
    assert done.exit_code in (0, 1, 2) and "holds the operation" not in done.said, str(done)
    assert not list((graphs / "written").iterdir())


@needs_tf_keras
@slow
@pytest.mark.parametrize("name", ["bad_write", "bad_initializer"])
def test_the_first_wall_alone_lets_nothing_be_written(graphs: Path, name: str) -> None:
    assert_refused(check_without(CONFINEMENT, name, directory=graphs, keras="tf_keras"), "WriteFile")
    assert not list((graphs / "written").iterdir())


@needs_tf_keras
@slow
@pytest.mark.parametrize("name", ["bad_write", "bad_initializer"])
def test_without_both_walls_they_would_write(graphs: Path, name: str) -> None:
    """So that the tests above can fail."""
    check_without(CONFINEMENT, name, "--allow-code-in-file", "--steps", "2", directory=graphs, keras="tf_keras")
    written = list((graphs / "written").iterdir())
    for path in written:
        path.unlink()
    assert written


@needs_tf_keras
@slow
def test_an_exported_graph_is_looked_at_whatever_it_holds(tmp_path: Path) -> None:
    """None of it is run, so none of it is refused."""
    exporter = """
        import sys
        import tensorflow as tf

        class Exported(tf.Module):
            @tf.function(input_signature=[tf.TensorSpec((None, 4), tf.float16)])
            def __call__(self, x):
                tf.io.write_file(sys.argv[1] + "/written", "x")
                return tf.matmul(x, tf.ones((4, 4), tf.float16))

        tf.saved_model.save(Exported(), sys.argv[1] + "/exported")
    """
    program = tmp_path / "exporter.py"
    program.write_text("\n".join(line[8:] for line in exporter.splitlines()))
    subprocess.run([sys.executable, str(program), str(tmp_path)], check=True, capture_output=True)
    done = check_without(CONFINEMENT, "exported", directory=tmp_path, keras="tf_keras")
    assert done.exit_code in (0, 1) and not done.report["probes"], str(done)
    assert {op["op"] for op in done.report["graphs"][0]["ops"]} >= {"MatMul"}
    assert not (tmp_path / "written").exists()
