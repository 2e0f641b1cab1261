"""QUERY and QUERYACK: documents of a binder out.

Source: mewbase wire protocol, QUERY, QUERYRESULT, QUERYACK. The page has a query by a matcher; the
client of 2016 asks for one document by its id as well.
"""

from functools import partial

from gateway.broker.access.model import Right
from gateway.mewbase.binders.binder import ID_BYTES_MAX, Binder, Kept
from gateway.mewbase.link import ChannelLink
from gateway.mewbase.matcher import BadMatcher, Matcher, read_matcher
from gateway.mewbase.query import Query
from gateway.mewbase.refusals import RequestRefusal, refusal_of
from gateway.mewbase.window import Window
from gateway.mewbase.wire import writing
from gateway.mewbase.wire.errors import Code
from gateway.mewbase.wire.frames import QUERYRESPONSE, QUERYRESULT, RESPONSE
from gateway.mewbase.wire.reading import Request
from gateway.pending import run
from gateway.settings.mewbase import QueryResponse


async def query(link: ChannelLink, request: Request) -> None:
    """Begin a query; its results come while other requests are handled."""
    number: int = request.values["queryID"]
    try:
        matcher = await _matcher(link, request)
        binder = _binder(link, request)
        _check_room(link, number)
    except RequestRefusal as refusal:
        refuse(link, number, refusal)
        return
    link.queries[number] = None
    run(_answer(link, request, binder, matcher), partial(_answered, link, number))


async def _matcher(link: ChannelLink, request: Request) -> Matcher | None:
    """Return the matcher of documents; None if its id is asked for. Raises RequestRefusal."""
    values = request.values
    if values["docID"] is not None:
        _check_id(values["docID"])
        return None
    if values["matcher"] is None:
        raise RequestRefusal(Code.BAD_REQUEST, "QUERY: matcher or docID is missing")
    try:
        return await read_matcher(values["matcher"], link.sources.reading.turns)
    except BadMatcher as error:
        raise RequestRefusal(Code.BAD_REQUEST, f"QUERY: {error}") from error


def _check_id(name: str) -> None:
    """Raise RequestRefusal if no document can have an id."""
    size = len(name.encode())
    if size > ID_BYTES_MAX:
        reason = f"docID has {size} bytes, and {ID_BYTES_MAX} are the most"
        raise RequestRefusal(Code.BAD_REQUEST, reason)


def _binder(link: ChannelLink, request: Request) -> Binder:
    name: str | None = request.values["binder"]
    if name is None:
        raise RequestRefusal(Code.NO_BINDER, "QUERY: binder is missing")
    found = link.host.binders.find(name)
    if found is None:
        raise RequestRefusal(Code.NO_BINDER, f"no such binder {name}")
    link.require(Right.READ, name)
    return found


def _check_room(link: ChannelLink, number: int) -> None:
    most = link.host.settings.queries_max
    if number in link.queries:
        raise RequestRefusal(Code.BAD_REQUEST, f"QUERY: query {number} is open")
    if len(link.queries) >= most:
        reason = f"the connection has {most} queries open (mewbase.queries_max)"
        raise RequestRefusal(Code.BAD_REQUEST, reason)


async def _answer(
    link: ChannelLink, request: Request, binder: Binder, matcher: Matcher | None
) -> None:
    """Send the one document that is asked for, or let the results come. Raises StoreError."""
    number, name = request.values["queryID"], request.values["docID"]
    kept = await _looked_up(link, binder, name)
    if kept is not None:
        if not link.is_closed:
            _take(link, number)
            result = kept.content
            link.ports.send(
                writing.answer(QUERYRESULT, queryID=number, ok=True, result=result, last=True)
            )
            del link.queries[number]
        return
    settings = link.host.settings
    found = Query(
        number,
        binder,
        matcher,
        Window(settings.window_bytes, settings.window_resume_bytes),
        settings.query_kept_bytes_max,
        link.sources,
        partial(_ended, link, number),
    )
    link.queries[number] = found
    await binder.begin(found)
    if link.queries.get(number) is not found:  # ended meanwhile, and the binder knew it not yet
        found.close()
        return
    _take(link, number)
    found.wake()


async def _looked_up(link: ChannelLink, binder: Binder, name: str | None) -> Kept | None:
    """Wait until a binder is fresh; return a document of it, or None if no one is named.

    Raises:
        RequestRefusal: The user may not read it any more, or a projection of it has ended.
        StoreError: It cannot be read.
    """
    await link.host.binders.freshen(binder)
    kept = None
    if name is not None:
        (kept,) = await link.host.reading.alone(binder.read([name.encode()]))
    link.require(Right.READ, binder.name)  # the right may have been taken away meanwhile
    ended = link.host.binders.ended_of(binder)
    if ended:
        reason = f"the projection {ended!r} of the binder has ended: the server's log says why"
        raise RequestRefusal(Code.SERVER, reason)
    return kept


async def find(link: ChannelLink, request: Request) -> None:
    """Answer with one document, as FINDBYID wants it. Raises RequestRefusal or StoreError."""
    values = request.values
    name = values["dodID"] if values["dodID"] is not None else values["docID"]
    if name is None:
        raise RequestRefusal(Code.BAD_REQUEST, "FINDBYID: dodID is missing")
    _check_id(name)
    kept = await _looked_up(link, _binder(link, request), name)
    result = None if kept is None else kept.content
    link.ports.send(writing.answer(RESPONSE, rID=values["rID"], ok=True, result=result))


def _answered(link: ChannelLink, number: int, outcome: BaseException | None) -> None:
    """Refuse a query that could not begin."""
    if outcome is None or link.is_closed:
        return
    del link.queries[number]
    refuse(
        link,
        number,
        refusal_of(outcome) or RequestRefusal(Code.SERVER, "the server's log says why"),
    )


def _ended(link: ChannelLink, number: int, reason: str) -> None:
    """Forget a query that has ended; one that failed gets its last result."""
    link.queries.pop(number, None)
    if reason:
        as_text = link.errors_as_text()
        link.ports.send(writing.no_result(number, Code.SERVER, reason, as_text=as_text))


def _take(link: ChannelLink, number: int) -> None:
    """Say that results follow, to a client that wants to know."""
    if _wants_response(link):
        link.ports.send(writing.answer(QUERYRESPONSE, queryID=number, ok=True))


def refuse(link: ChannelLink, number: int, refusal: RequestRefusal) -> None:
    """Send the only result of a query that is refused."""
    as_text = link.errors_as_text()
    if _wants_response(link):
        failed = writing.failure(refusal.code, refusal.reason, as_text=as_text)
        link.ports.send(writing.answer(QUERYRESPONSE, queryID=number, **failed))
    link.ports.send(writing.no_result(number, refusal.code, refusal.reason, as_text=as_text))


def _wants_response(link: ChannelLink) -> bool:
    wanted = link.host.settings.query_response
    return wanted is QueryResponse.ALWAYS or (
        wanted is QueryResponse.AUTO and link.session.has_page_form
    )


async def acknowledge(link: ChannelLink, request: Request) -> None:
    """Take an acknowledgement; one of a query that has ended may have crossed its end."""
    found = link.queries.get(request.values["queryID"])
    if found is not None:
        found.acknowledge()
