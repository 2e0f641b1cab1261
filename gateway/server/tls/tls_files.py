"""The files behind TLS, as a context for handshakes; changed files are taken while it runs."""

import asyncio
import binascii
import logging
import os
import re
import ssl
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.network.certificate import UnreadableCertificate, described, revocation_list_issuer
from gateway.pending import Pending
from gateway.server.loop.threads import Threads
from gateway.settings.errors import ConfigError, Problem

log = logging.getLogger(__name__)

_REVOKED: Final = re.compile(rb"-----BEGIN X509 CRL-----(.*?)-----END X509 CRL-----", re.DOTALL)
_OTHERS_READ: Final = stat.S_IROTH
_OTHERS_CHANGE: Final = stat.S_IWGRP | stat.S_IWOTH
_Stamp = tuple[int, int, int]
_NO_STAMP: Final = (0, 0, 0)


class UnusableTlsFile(Exception):
    """The files cannot be used: which one, and why."""

    def __init__(self, setting: str, reason: str) -> None:
        super().__init__(f"{setting}: {reason}")
        self.setting = setting
        self.reason = reason


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Files of certificates; PEM."""

    certificate: Path
    key: Path
    ca: Path | None = None
    requires_client: bool = False
    speaks: str = ""
    """Protocol that clients may ask for in the greeting; empty where they ask for none."""

    def context(self) -> ssl.SSLContext:
        """Read the files; blocks. Raises Unusable."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        if self.speaks:
            context.set_alpn_protocols([self.speaks])
        self._load_own(context)
        if self.ca is not None:
            self._load_authorities(context, self.ca)
            context.verify_mode = ssl.CERT_REQUIRED if self.requires_client else ssl.CERT_OPTIONAL
            # A client that comes again shows its certificate again: it may have expired.
            context.num_tickets = 0
            context.options |= ssl.OP_NO_TICKET
        return context

    def _load_own(self, context: ssl.SSLContext) -> None:
        for path, flag in ((self.certificate, "--tls-cert"), (self.key, "--tls-key")):
            _require_readable(path, flag)
        _warn_of_others(self.key)
        try:
            context.load_cert_chain(self.certificate, self.key, password=_no_password)
        except _EncryptedKey:
            raise UnusableTlsFile("--tls-key", f"{self.key} is encrypted") from None
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                reason = f"{self.key} is not the key of {self.certificate}"
            else:
                reason = f"{self.certificate} and {self.key}: {error.reason or 'not PEM'}"
            raise UnusableTlsFile("--tls-cert", reason) from None

    def _load_authorities(self, context: ssl.SSLContext, path: Path) -> None:
        _require_readable(path, "--tls-ca")
        try:
            context.load_verify_locations(cafile=path)
        except ssl.SSLError as error:
            raise UnusableTlsFile("--tls-ca", f"{path}: {error.reason or 'not PEM'}") from None
        lists = [binascii.a2b_base64(found) for found in _REVOKED.findall(path.read_bytes())]
        if lists:
            # Of every certificate up to the root: what a revoked authority signed is refused.
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN
            _warn_of_missing(context.get_ca_certs(binary_form=True), lists, path)

    def stamps(self) -> tuple[_Stamp, ...]:
        """Return stamps that change with the files; blocks."""
        return tuple(_stamp(path) for path in (self.certificate, self.key, self.ca) if path)


class _EncryptedKey(Exception):
    """A password is wanted; without this the server would ask for it on the terminal."""


def _no_password() -> str:
    raise _EncryptedKey


def _require_readable(path: Path, flag: str) -> None:
    try:
        path.open("rb").close()
    except OSError as error:
        raise UnusableTlsFile(flag, f"cannot read {path}: {error.strerror}") from None


def _warn_of_others(key: Path) -> None:
    """Warn of a key that more than its owner and its group may read, or more than its owner change.

    It is taken all the same: containers are given their secrets so.
    """
    mode = stat.S_IMODE(key.stat().st_mode)
    if mode & (_OTHERS_READ | _OTHERS_CHANGE):
        log.warning(
            "tls key is open to other users, fix it with chmod 600 key=%s mode=%o", key, mode
        )


def _warn_of_missing(authorities: Iterable[bytes], lists: Iterable[bytes], path: Path) -> None:
    """Warn of authorities without a list: OpenSSL refuses every certificate that they signed."""
    with suppress(UnreadableCertificate):
        listed = {revocation_list_issuer(each) for each in lists}
        for subject in sorted({described(each).subject for each in authorities} - listed):
            log.warning(
                "authority has no revocation list, its certificates are refused"
                " authority=%s file=%s",
                subject,
                path,
            )


def _stamp(path: Path) -> _Stamp:
    try:
        found = os.stat(path)  # noqa: PTH116  # through links: that is how they are swapped
    except OSError:
        return _NO_STAMP
    return found.st_ino, found.st_size, found.st_mtime_ns


class TlsContexts:
    """The context for the next handshake; connections that are there keep theirs."""

    def __init__(self, files: TlsFiles, loop: asyncio.AbstractEventLoop) -> None:
        """Read the files; blocks. Raises ConfigError."""
        self._files = files
        self._threads = Threads(loop, 1)
        self._stamps = files.stamps()
        self._watching: asyncio.Task[None] | None = None
        self._loop = loop
        try:
            self.current = files.context()
        except UnusableTlsFile as error:
            raise ConfigError(Problem(error.setting, error.reason)) from error

    @property
    def asks_for_certificates(self) -> bool:
        """True if clients may show certificates."""
        return self._files.ca is not None

    def watch(self, interval_s: float) -> None:
        """Look at the files from time to time."""
        self._watching = self._loop.create_task(self._watch(interval_s))

    def stop(self) -> None:
        """Look no more."""
        if self._watching is not None:
            self._watching.cancel()

    async def _watch(self, interval_s: float) -> None:
        while True:
            await asyncio.sleep(interval_s)
            self._when_done(self._threads.run(self._read_if_changed))

    def reload(self) -> None:
        """Read the files again, changed or not."""
        self._when_done(self._threads.run(self._read))

    def _read_if_changed(self) -> ssl.SSLContext | None:
        return None if self._files.stamps() == self._stamps else self._read()

    def _read(self) -> ssl.SSLContext | None:
        # Before they are read: what changes meanwhile is seen the next time.
        self._stamps = self._files.stamps()
        return self._files.context()

    def _when_done(self, reading: Pending[ssl.SSLContext | None]) -> None:
        reading.when_settled(lambda: self._read_again(reading))

    def _read_again(self, reading: Pending[ssl.SSLContext | None]) -> None:
        try:
            context = reading.result()
        except Exception as error:  # noqa: BLE001  # the edge of a reading: the old ones serve on
            log.error(  # noqa: TRY400  # one line for the operator
                "tls files cannot be used, the previous ones stay in use error=%s", error
            )
            return
        if context is not None:
            self.current = context
            log.info("tls files loaded for new connections certificate=%s", self._files.certificate)
