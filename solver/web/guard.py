"""Who may talk to the explorer: the page that it serves itself, and nobody else.

It listens on 127.0.0.1, but any site that is open in the same browser can send requests there.  So the name that a
request was sent to (Host) must be the own one, or a foreign name that resolves to this machine would do (DNS
rebinding); and a request that says it comes from another site (Origin, Sec-Fetch-Site) is refused, websockets, to which
browsers do not apply the same-origin policy, above all.  The answers tell the browser to load and connect to nothing
but this server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_UPLOAD = 1_000_000  # bytes of a file
MAX_BODY = MAX_UPLOAD + 10_000  # with what a form adds
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",  # NiceGUI's page is inline, Vue compiles its templates
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class TooLargeError(Exception):
    """A request with more than MAX_BODY bytes."""


class Guard:
    """An ASGI application in front of another one, which is reached at a port of this machine only."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], port: int) -> None:
        self.app = app
        self.hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost"))
        if port == 80:
            self.hosts |= {"127.0.0.1", "localhost"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        wrong = self.refusal(scope)
        if wrong is not None:
            await _refuse(scope, send, *wrong)
            return
        if scope["type"] == "websocket":
            await self.app(scope, receive, send)
            return
        began = False

        async def answer(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                names = {name for name, _ in HEADERS}
                kept = [(name, value) for name, value in message.get("headers", ()) if name.lower() not in names]
                message = {**message, "headers": [*kept, *HEADERS]}
            await send(message)

        try:
            await self.app(scope, _counted(receive), answer)
        except TooLargeError:
            if not began:
                await _refuse(scope, send, 413, f"A request has at most {MAX_BODY:,} bytes.")

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Why a request is refused, as a status and a sentence; None if it is not."""
        headers = [(name.lower(), value.decode("latin-1")) for name, value in scope["headers"]]

        def every(name: bytes) -> list[str]:
            return [value for found, value in headers if found == name]

        hosts, origins = every(b"host"), every(b"origin")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return 421, "This page is served at 127.0.0.1 only."
        own = f"http://{hosts[0].lower()}"
        if len(origins) > 1 or any(origin.lower() != own for origin in origins):
            return 403, "This page takes requests from itself only."
        if scope["type"] == "websocket":
            return None if origins else (403, "A websocket must say where it comes from.")
        sites, modes = every(b"sec-fetch-site"), every(b"sec-fetch-mode")
        foreign = any(site not in ("same-origin", "none") for site in sites)
        # A link from elsewhere to the page is fine: what it can say is a line or a hand to look at.
        if foreign and not (scope["method"] == "GET" and modes == ["navigate"]):
            return 403, "This page takes requests from itself only."
        lengths = every(b"content-length")
        if any(not length.isdigit() or len(length) > 12 or int(length) > MAX_BODY for length in lengths):
            return 413, f"A request has at most {MAX_BODY:,} bytes."
        return None


def _counted(receive: Receive) -> Receive:
    """A body of which no more than MAX_BODY bytes are read, however it is sent."""
    total = 0

    async def next_part() -> Message:
        nonlocal total
        message = await receive()
        if message["type"] == "http.request":
            total += len(message.get("body", b""))
            if total > MAX_BODY:
                raise TooLargeError
        return message

    return next_part


async def _refuse(scope: Scope, send: Send, status: int, sentence: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": sentence})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": sentence.encode()})
