# SPDX-License-Identifier: BSD-3-Clause
"""A client of one appliance or several over UDP, by libtokd-client: text to ids and back, and
answers of a model."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import SupportsIndex

from .. import wire
from .._arguments import SIZE_MAX, check_number, check_several
from .._closing import Closing
from .._native import libtokd as native
from ..tokenizer.batch import Uint32Ids
from ..tokenizer.decode import IdsLike, ids_for
from ..tokenizer.stream import Text
from .errors import array_of, check, check_options, decoding, opened, text_of
from .generation import Generation, Made, Progress, Prompt

IN_FLIGHT = 64
REQUESTS = 1024  # in flight at once: those of tokenize_many, and streams that are not read


class Client(Closing):
    """Sends texts to an appliance, or to several, and returns their ids, or ids and their text.

    One thread at a time: a second one gets RuntimeError. The GIL is released while it waits, and
    signals are checked every 50 ms.

    `stream_id` is that of the latest text in the token ring.
    """

    def __init__(
        self,
        host: str,
        port: int = wire.PORT,
        *,
        vocab: int = 0,
        timeout: float = 5.0,
        stream: bool = False,
        mtu: int = 0,
    ) -> None:
        """Connect to the appliance at `host`, a name or an IPv4 or IPv6 address.

        host: also HOST:PORT, or several separated by commas, which need `vocab`. Each text then
        goes to one that is healthy; a dead one's texts go to others within `timeout`.
        vocab: checksum of the vocabulary to use (`Tokenizer.checksum`); 0: the appliance's default.
        timeout: seconds without any progress, at most a day, after which a text fails with
        TimeoutError.
        stream: get each id as soon as it is certain, also in `tokenize`.
        mtu: of the path, bytes of an IP packet, where it is smaller than the system knows.
        OSError: the name or address cannot be used; ValueError: an argument out of range.
        """
        timeout = check_options(host, port, vocab, timeout, mtu)
        self._flags = native.STREAM if stream else 0
        self._client = opened(host, port, vocab, timeout, REQUESTS, mtu)
        self.stream_id = 0

    @property
    def retransmits(self) -> int:
        """Packets of text sent again."""
        return self._client.stats()[0]

    @property
    def polls(self) -> int:
        """Packets without text."""
        return self._client.stats()[1]

    @property
    def resends(self) -> int:
        """Texts started again."""
        return self._client.stats()[2]

    @property
    def server_vocab(self) -> int:
        """Checksum of the vocabulary used; 0 before the first reply."""
        return self._client.stats()[3]

    @property
    def moved(self) -> int:
        """Texts started again at another appliance."""
        return self._client.stats()[4]

    @property
    def healthy(self) -> int:
        """Appliances that are not known to be down."""
        return self._client.stats()[5]

    def tokenize(self, text: Text) -> Uint32Ids:
        """Ids of `text`: uint32, shape (n,), the caller's own.

        Text is a str, or UTF-8 bytes. TokdError: the appliance refused it, or the ids do not match
        their CRC32C; TimeoutError: nothing moved for `timeout` seconds; OSError: the host cannot be
        reached, nothing listens there, or the client was closed; ValueError: a str with a
        surrogate, or a text of 4 GiB or more; RuntimeError: 1024 texts are in flight.
        """
        return array_of(self._whole(self._client.submit(text, self._flags)))

    def tokenize_many(self, texts: Iterable[Text], in_flight: int = IN_FLIGHT) -> list[Uint32Ids]:
        """Ids of each text, in the order of the texts, with up to `in_flight` texts (at most 1024)
        in flight. Errors as in `tokenize`; the first one ends it. A note in the error says which
        text cannot be sent."""
        check_several("texts", texts, "texts")
        check_number("in_flight", in_flight, SIZE_MAX, least=1)
        # Streams and answers that are not read may be in flight, too.
        most = max(1, min(in_flight, REQUESTS - self._client.pending))
        requests: list[native.Request] = []
        under_way: list[native.Request] = []
        try:
            for text in texts:
                while len(under_way) >= most:
                    self._client.wait()
                    for request in under_way:
                        if request.finished:
                            check(request)
                    under_way = [request for request in under_way if not request.finished]
                try:
                    request = self._client.submit(text, self._flags)
                except (TypeError, ValueError) as error:
                    error.add_note(f"text {len(requests)} of the batch")
                    raise
                requests.append(request)
                under_way.append(request)
            return [array_of(self._whole(request)) for request in requests]
        finally:
            for request in requests:
                self._client.cancel(request)

    def stream(self, text: Text) -> Iterator[Uint32Ids]:
        """Ids of `text` in order as they arrive: arrays as `tokenize` gives.

        Errors as in `tokenize`, also after some ids. Closing the iterator cancels the text.
        """
        request = self._client.submit(text, native.STREAM)
        try:
            while True:
                if (ids := request.take()) is not None:
                    yield array_of(ids)
                elif request.finished:
                    break
                else:
                    self._client.wait()
            self._note(request)
        finally:
            self._client.cancel(request)

    def detokenize(self, ids: IdsLike, *, skip_special_tokens: bool = False) -> str:
        """Text of `ids`, with U+FFFD for parts of characters: as `Tokenizer.decode`.

        ids: a list, or an array of shape (n,), of any integer type. ValueError: it is no flat
        list of ids. TokdError: an id is not in the vocabulary (`Reason.ID`). Other errors as in
        `tokenize`.
        """
        return text_of(
            self._whole(self._client.submit(ids_for(ids), decoding(skip_special_tokens)))
        )

    def generate(
        self, text: Text, max_tokens: SupportsIndex, *, skip_special_tokens: bool = True
    ) -> Generation:
        """Up to `max_tokens` ids by which a model on the appliance's GPU continues `text`, and
        their text, as they are made. The first `next` sends the text.

        The texts together are those of all ids: `Tokenizer.decode`. While nobody reads the
        iterator, the model pauses for this text; after the appliance's --stream-timeout it fails.
        `timeout` of the client counts from the last id. ValueError: `max_tokens` is not 1 to
        1048576, or a str has a surrogate. TokdError: no model runs there (`Reason.SINK`), or it
        failed, also after some ids. TimeoutError: also that no lane of its GPU was free for
        `timeout`. Other errors as in `tokenize`. An answer that has begun is not begun again.
        """
        progress = Progress()
        prompt = Prompt(text, max_tokens, skip_special_tokens)
        return Generation(progress, self._made(progress, prompt))

    def _made(self, progress: Progress, prompt: Prompt) -> Generator[Made, None, None]:
        progress.begun = True
        request = self._client.submit(prompt.text, prompt.flags, prompt.limit)
        try:
            while True:
                while (item := self._client.made(request)) is not None:
                    if (made := progress.taken(item)) is not None:
                        yield made
                if request.finished:
                    break
                self._client.wait()
            self._note(request)
        except GeneratorExit:
            progress.close()
            raise
        finally:
            self._client.cancel(request)

    def close(self) -> None:
        """Close the socket. A text in flight fails with ConnectionAbortedError."""
        self._client.close()

    def _whole(self, request: native.Request) -> bytearray:
        """All that a request asked for, once it is finished."""
        try:
            while not request.finished:
                self._client.wait()
        except BaseException:
            self._client.cancel(request)
            raise
        self._note(request)
        return request.ids()

    def _note(self, request: native.Request) -> None:
        self.stream_id = request.stream_id
        check(request)
