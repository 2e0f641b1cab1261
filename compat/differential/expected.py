"""The differences that are meant, each with its reason."""

from __future__ import annotations

from compat.comparison import Expected

CUT_OFF = "FIN"
CLOSED = "close corr 1 code 13 'unknown frame'"
CRASH = "RabbitMQ's connection process crashes; Hutch closes in order, as for any malformed frame"
NO_INTEGER = "RabbitMQ's connection process crashes; Hutch refuses the argument"
ONE_STEP = (
    "before Open RabbitMQ allows one step a read and ends the connection after a second one; "
    "Hutch takes what is in order, however it is cut into reads"
)
ANONYMOUS = "RabbitMQ's connection process crashes when ANONYMOUS is renewed; Hutch renews it"
TABLE = "RabbitMQ's connection process crashes on such a table; Hutch answers as to other bad data"
THRESHOLD = (
    "RabbitMQ sends once credit exceeds half of the initial credit, Hutch once there is any: a "
    "client that waits for a chunk after each credit would hang"
)

NEW_IN_4_4 = "stream-initial-offset is new in RabbitMQ 4.4; to 4.3 it is an unknown argument"

CRASHES = tuple(
    Expected(script=pattern, theirs=CUT_OFF, ours=CLOSED, reason=CRASH)
    for pattern in (
        "again once open: a byte too many",
        "malformed: create: *",
        "malformed: metadata: *",
        "malformed: publish: an entry cut short",
        "malformed: resolve: offset type 0",
        "malformed: subscribe: *",
        "lists whose counts lie: *",
        "malformed: super stream: lists cut short",
        "malformed: versions: a row cut short",
        "what only a server says: publish_error of none",
        "what only a server says: an answer to nothing",
        "an answer to no consumer update with offset type 9",
        "an entry cut short: those before it are stored",
        "an entry whose size points far beyond the frame",
        "an id cut short",
        "sub-batch: cut short",
        "sub-batch: its header cut short",
        "sub-batch: in version 2",
        "version 2: a filter value cut short",
    )
)

UNKNOWN_MECHANISMS = tuple(
    Expected(
        script=f"login: {script}",
        theirs="after 0 s",
        ours="after 3 s",
        reason="Hutch delays it as a wrong password: asked for without end it would cost too much",
    )
    for script in (
        "EXTERNAL without a certificate",
        "a mechanism in lower case",
        "a mechanism that nobody knows",
        "an empty mechanism",
    )
)

EXPECTED: tuple[Expected, ...] = (
    *CRASHES,
    *UNKNOWN_MECHANISMS,
    Expected(
        script="another protocol: *",
        reason="RabbitMQ ends the connection without a word; Hutch answers in the words of that "
        "protocol, which are no frame",
    ),
    Expected(
        script="malformed: versions: a key that nobody knows",
        theirs=CUT_OFF,
        ours="code 1 ['0x01",
        reason="a client of tomorrow announces commands of tomorrow; Hutch passes over them",
    ),
    Expected(
        script="create with no integer in *", theirs=CUT_OFF, ours="code 17", reason=NO_INTEGER
    ),
    Expected(
        script="an argument of a super stream that is no integer",
        theirs=CUT_OFF,
        ours="code 15",
        reason=NO_INTEGER,
    ),
    Expected(
        script="1,001 partitions without a right to any",
        label="too many",
        theirs="code 16",
        ours="code 17",
        reason="Hutch counts the partitions before it looks at the rights to each of them",
    ),
    Expected(
        script="policy: a size of segments that comes later",
        label="described",
        reason="RabbitMQ takes another size of segments when the stream's process starts anew, "
        "Hutch from the next look on",
    ),
    Expected(
        script="policy: {'stream-max-segment-size-bytes': 0} is judged",
        reason="RabbitMQ accepts it, and then rolls segments without end; Hutch refuses it",
    ),
    Expected(
        script="retention: a stored offset below what is left, and a publisher",
        label="after",
        theirs="code 19",
        ours="code 1 value 1",
        reason="RabbitMQ forgets it with a later segment, and the consumer then begins at the end; "
        "Hutch keeps it, so that the consumer goes on with all that is left",
    ),
    Expected(
        script="bindings without order",
        label="any order",
        theirs="code 1",
        ours="code 1",
        reason="RabbitMQ lists them in the order of a hash table, Hutch by their names",
        is_by_chance=True,
    ),
    *(
        Expected(
            script=f"create with stream-max-segment-size-bytes={size}",
            reason="RabbitMQ accepts it, and then rolls segments without end; Hutch refuses it",
        )
        for size in ("8", "1", "0", "-5")
    ),
    Expected(
        script="pipelined: properties and mechanisms",
        theirs=CUT_OFF,
        ours="offers ['",
        reason=ONE_STEP,
    ),
    Expected(
        script="pipelined: authentication and tune",
        theirs=CUT_OFF,
        ours="tune frame_max",
        reason=ONE_STEP,
    ),
    Expected(
        script="pipelined: tune, open and a command",
        theirs=CUT_OFF,
        ours="metadata answer",
        reason=ONE_STEP,
    ),
    *(
        Expected(
            script="all permissions are taken away under a publisher and a subscriber",
            label=label,
            theirs=theirs,
            ours=ours,
            reason="in Hutch nobody goes on reading or writing without any permission",
        )
        for label, theirs, ours in (
            ("told", "", "metadata_update code 6"),
            ("published", "confirmed", "1: 18"),
            ("unsubscribed", "code 1", "code 4"),
        )
    ),
    Expected(
        script="anonymous: renewed by itself, not by another mechanism",
        theirs=CUT_OFF,
        ours="code 1",
        reason=ANONYMOUS,
    ),
    Expected(
        script="anonymous: renewed by itself, not by another mechanism",
        theirs="(cannot be sent",
        ours="code 20",
        reason=ANONYMOUS,
    ),
    *(
        Expected(script=f"amqplain, refused: {what}", theirs=CUT_OFF, ours="code 9", reason=TABLE)
        for what in (
            "the outer length in front",
            "a password cut short",
            "a name cut short",
            "a kind that nobody knows",
            "what PLAIN sends",
        )
    ),
    Expected(
        script="partitions: a third comes while one steps down",
        label="asked again",
        theirs="active 0",
        reason="RabbitMQ asks who steps down again when others come; one answer ends it in both",
    ),
    *(
        Expected(
            script="partitions: the one that steps down unsubscribes, which changes who *",
            label=label,
            theirs=theirs,
            ours=ours,
            reason="RabbitMQ takes this for an answer and then a departure, and starts somebody "
            "who has to step down at once; Hutch starts the one who stays",
        )
        for label, theirs, ours in (("of two", "", "active 1"), ("of three", "active 0", ""))
    ),
    Expected(
        script="group: an answer to the question of a subscription that is no more",
        theirs="delivered to 1: 0=m0",
        reason="RabbitMQ takes the late answer for one to the new subscription of the same id; "
        "Hutch knows that it asked another",
    ),
    *(
        Expected(
            script=f"initial offset: {name}",
            label=label,
            theirs=theirs,
            ours=ours,
            reason=NEW_IN_4_4,
        )
        for name, label, theirs, ours in (
            ("'*'", "create", "code 1", "code 17"),
            ("'*'", "metadata", "code 1", "code 2"),
            ("the first record gets it", "empty", "offset 0", "offset 1000"),
            (
                "the first record gets it",
                "statistics",
                "committed_offset 0",
                "committed_offset 1000",
            ),
            ("the first record gets it", "read", "0=", "1000="),
            ("create again with another", "another", "code 5", "code 17"),
        )
    ),
    Expected(
        script="credit that was not used waits for what comes",
        label="below the threshold",
        ours="delivered to 1",
        reason=THRESHOLD,
    ),
    Expected(
        script="half of the initial credit used up, one added",
        label="half",
        ours="delivered to 1",
        reason=THRESHOLD,
    ),
    Expected(
        script="forty messages stored one by one, read with a credit of one",
        label="joined",
        theirs="delivered to 1: 0=m0",
        ours="delivered to 1: 0=m0 1=m1",
        reason="Hutch joins small chunks at delivery, and takes one credit for what it joined",
    ),
    *(
        Expected(
            script=f"version 2: a filter value{rest}",
            theirs=f"bloom {size}",
            ours="bloom 0",
            reason="the bytes of the bloom filter are never sent; Hutch's chunks have none",
        )
        for rest, size in (("", 16), (" of 5,000 bytes", 16), (" in a stream of large *", 200))
    ),
    Expected(
        script="a count of 2^32 - 1",
        label="afterwards",
        theirs="(not all that was waited for came)",
        ours="metadata answer",
        reason="RabbitMQ takes the count for as many messages and stops reading; Hutch counts them",
    ),
    Expected(
        script="statistics after an offset was stored",
        label="statistics",
        theirs="committed_offset 2",
        ours="committed_offset 1",
        reason="a stored offset takes up an offset of the stream in RabbitMQ, never in Hutch",
    ),
)
