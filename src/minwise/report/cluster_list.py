"""Cluster list: a report and texts in, what was removed and what nearly was out, to be looked at one by one."""

from collections.abc import Iterable, Mapping
from typing import Any

from minwise.report.html import section
from minwise.report.limits import MANY_DOCUMENTS, SHOWN_MEMBERS, SHOWN_PAIRS
from minwise.report.side_by_side import LEGEND
from minwise.report.texts import Texts, tick_box
from minwise.report.wording import cut, plural, share, with_code

__all__ = ["just_below", "largest_clusters"]

Values = Mapping[str, Any]


def largest_clusters(report: Values, texts: Texts) -> str:
    """The largest clusters, each to be opened, and a box to tick for every member that should have been kept."""
    clusters = report.get("largest_clusters") or []
    if not clusters:
        body = '<p class="quiet">Nothing was removed.</p>'
    else:
        shown, total = len(clusters), report["clusters"]["of_two_or_more"]
        which = f"The {shown} largest of {plural(total, 'cluster')}" if total > shown else plural(total, "cluster")
        intro = f"<p>{which}. Members that are least similar to the kept one come first.{_how_to_tick(report)}</p>"
        parts = [_cluster(one, report, texts) for one in clusters]
        body = f"{intro}{_note(texts)}{LEGEND if texts.read else ''}{''.join(parts)}"
    return section("clusters", "What was removed", body)


def just_below(report: Values, texts: Texts) -> str:
    """Pairs just below the threshold, with those of two kept documents shown; nothing if nobody looked."""
    found = report.get("just_below")
    if found is None:
        return ""
    between = f"a similarity from {found['from']:g} up to the threshold {report['settings']['threshold']:g}"
    pairs = found["closest"][:SHOWN_PAIRS]
    if not found["pairs"]:
        body = f'<p class="quiet">No candidate pair has {between}.</p>'
    else:
        both = "The closest in which both documents are kept:" if pairs else "In none of them both documents are kept."
        intro = f"<p>{plural(found['pairs'], 'candidate pair')} {_have(found['pairs'])} {between}. {both}</p>"
        body = f"{intro}{''.join(_pair(one, report, texts) for one in pairs)}"
    return section("just-below", "What nearly was removed", body)


def _cluster(cluster: Values, report: Values, texts: Texts) -> str:
    kept, members = cluster["kept"], cluster["members"]
    read = report["counts"]["read"]
    large = (
        f'<span class="tag">{share(cluster["size"], read)} of all</span>' if _is_large(cluster["size"], read) else ""
    )
    left_out = cluster["size"] - 1 - len(members)
    more = f'<p class="quiet">{plural(left_out, "more", "more")} in removed.parquet.</p>' if left_out > 0 else ""
    return (
        f'<details class="cluster"><summary><span class="count">{plural(cluster["size"], "document")}</span> '
        f'{texts.name(kept)} {large} <span class="quiet least">{_least(cluster, report)}</span></summary>'
        f'<p class="kept-one"><span class="quiet">kept</span> {texts.name(kept)} {texts.place(kept)}</p>'
        f'<ol class="members">{_members(kept, members, report, texts)}</ol>{more}</details>'
    )


def _least(cluster: Values, report: Values) -> str:
    """How similar the least similar member is; how many nobody compared, if so: of these it is not known."""
    similarities = [one["similarity"] for one in cluster["members"]]
    unknown = similarities.count(None)
    if unknown:
        # Members that were not compared come first: if all that are named are such, there may be more.
        more = unknown == len(similarities) < cluster["size"] - 1
        return f"{'at least ' if more else ''}{unknown:,} not compared"
    return f"least similar {_about(min(similarities), report)}"


def _members(kept: Values, members: Iterable[Values], report: Values, texts: Texts) -> str:
    return "".join(
        f'<li class="member"><div class="line">{_similarity(one["similarity"], report)} {texts.name(one)} '
        f"{texts.place(one)} {tick_box(one)}</div>"
        f"{texts.differences(kept, one) if place < SHOWN_MEMBERS else ''}</li>"
        for place, one in enumerate(members)
    )


def _pair(pair: Values, report: Values, texts: Texts) -> str:
    left, right = pair["left"], pair["right"]
    places = " ".join(f"<li>{texts.name(one)} {texts.place(one)}</li>" for one in (left, right))
    return (
        f'<details class="cluster pair"><summary>{_similarity(pair["similarity"], report)} {texts.name(left)} '
        f'<span class="quiet">and</span> {texts.name(right)}</summary><ul class="both">{places}</ul>'
        f"{texts.differences(left, right)}</details>"
    )


def _similarity(value: float | None, report: Values) -> str:
    """A similarity, with what there is to know about it."""
    if value is None:
        return '<span class="similarity quiet">not compared</span>'
    chained = value < report["settings"]["threshold"] and report["settings"]["group"] == "components"
    tag = ' <span class="tag">joined through others</span>' if chained else ""
    return f'<span class="similarity">{_about(value, report)}</span>{tag}'


def _about(value: float, report: Values) -> str:
    """The number; an estimate says so."""
    return f"≈ {cut(value)}" if report["settings"]["verify"] == "signature" else cut(value)


def _how_to_tick(report: Values) -> str:
    twins = report.get("duplicate_ids") or 0
    shared = (
        f" {plural(twins, 'document')} {_have(twins)} the id of an earlier one; an id names them all." if twins else ""
    )
    return f'<span class="live-only"> Tick what should have been kept.</span>{shared}'


def _note(texts: Texts) -> str:
    if not texts.exist:
        return '<p class="quiet">The documents are sets: there is no text to show.</p>'
    return f'<p class="quiet">{with_code(texts.note)}</p>' if texts.note else ""


def _is_large(size: int, documents: int) -> bool:
    """Whether a cluster is worth an alarm."""
    return documents >= MANY_DOCUMENTS and size > documents / 100


def _have(count: int) -> str:
    return "has" if count == 1 else "have"
