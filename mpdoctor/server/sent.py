"""What is sent to the editor of a finding and of a fix, in the protocol's types."""

from __future__ import annotations

from lsprotocol import types as lsp

from mpdoctor.finding import Edit, Finding, Severity
from mpdoctor.fixes.texts import line_end_at
from mpdoctor.server.actions import Action
from mpdoctor.server.checking import Checked
from mpdoctor.server.pages import text_of_finding
from mpdoctor.server.positions import Span, span_from_location

NAME = "mpdoctor"

_SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.INFO: lsp.DiagnosticSeverity.Information,
}


def diagnostic(finding: Finding, text: str, encoding: str) -> lsp.Diagnostic:
    return lsp.Diagnostic(
        range=range_of(span_of(finding, text, encoding)),
        message=text_of_finding(finding),
        severity=_SEVERITIES[finding.severity or Severity.WARNING],
        code=finding.code,
        source=NAME,
        data=finding.fingerprint,
    )


def quick_fix(action: Action, check: Checked, uri: str, encoding: str) -> lsp.CodeAction:
    return lsp.CodeAction(
        action.title,
        lsp.CodeActionKind.QuickFix,
        [diagnostic(action.finding, check.text, encoding)],
        is_preferred=action.is_safe,
        edit=lsp.WorkspaceEdit({uri: [_text_edit(edit, check.text, encoding) for edit in action.edits]}),
    )


def _text_edit(edit: Edit, text: str, encoding: str) -> lsp.TextEdit:
    return lsp.TextEdit(
        range_of(span_from_location(edit.location, text, encoding)), edit.text.replace("\n", line_end_at(text, 0))
    )


def span_of(finding: Finding, text: str, encoding: str) -> Span:
    assert finding.location is not None, "those of a text have one"
    return span_from_location(finding.location, text, encoding)


def range_of(span: Span) -> lsp.Range:
    return lsp.Range(lsp.Position(*span.start), lsp.Position(*span.end))
