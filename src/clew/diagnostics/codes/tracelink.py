"""What can be wrong with trace ids, node ids and the messages that carry them."""

from clew.diagnostics.diagnostic import Code, Nature

INVALID_TRACE_MESSAGE = Code(
    "InvalidTraceMessage",
    "{problem}",
    "Bytes are not a FrameDescriptor or TraceLinkSet as its schema defines it, or values cannot be put into one: no "
    "parents, a parent twice, a trace id of 0, a number that does not fit its field, a message that breaks off.",
    "the schemas of the messages are installed with Clew, in clew/tracelink/schemas",
)
INVALID_NODE_ID = Code(
    "InvalidNodeId",
    "{node_id} is not a node id: they go from 0 to {largest}",
    "A node id was configured that does not fit into the bits that a trace id has for it.",
    "choose one in the range, or let Clew lease one",
    Nature.USAGE,
)
INVALID_BLOCK = Code(
    "InvalidBlock",
    "{problem}",
    "A block of trace ids was asked for, or one of its ids, that cannot exist.",
    "a block holds 0 or more ids, and its ordinals count from 0",
    Nature.USAGE,
)
TRACE_IDS_EXHAUSTED = Code(
    "TraceIdsExhausted",
    "node {node_id} may mint trace ids up to {until_ms} ms since 1970 and has reached that",
    "A generator of trace ids is at the end of the time that it may use: the lease of its node id was not renewed in "
    "time, or the 41 bits of the timestamp are full (in September 2039).",
    "see that keepalives reach the state store",
)
NODE_ID_TAKEN = Code(
    "NodeIdTaken",
    "{problem}",
    "A node id is held by another process or has not cooled down since, or there is no free one left.",
    "let Clew choose the node id, or wait until the other process has ended and the cooldown is over",
)
NODE_LEASE_LOST = Code(
    "NodeLeaseLost",
    "the lease of node {node_id} is lost: {reason}",
    "A process minted trace ids under a node id that it no longer holds: the lease ran out or was revoked.",
    "start the process again; it then leases a node id anew",
)
FORKED_GENERATOR = Code(
    "ForkedGenerator",
    "a generator of trace ids made in process {made_in} was used in process {used_in}",
    "A forked process used its parent's generator. Both would mint the same ids.",
    "make a generator with its own node id in each process",
    Nature.USAGE,
)
INVALID_BOUNDS = Code(
    "InvalidBounds",
    "{problem}",
    "A window or the range of an artifact is not a range of places in a stream, nor one of times.",
    "give a start and an end of one kind, the start not behind the end",
    Nature.USAGE,
)
ADDRESS_UNUSABLE = Code(
    "AddressUnusable",
    "a collector cannot listen at {address}: {reason}",
    "The address of a collector is not one, does not resolve, or is in use by another process.",
    "name a host and a free port such as 127.0.0.1:9904",
    Nature.USAGE,
)
REMOTE_NOT_ALLOWED = Code(
    "RemoteNotAllowed",
    "other machines reach {address}",
    "A collector was to listen at an address that is not of this machine alone. It takes what anybody sends: datagrams "
    "name no sender that could be trusted.",
    "use 127.0.0.1, or --allow-remote where the network keeps strangers out",
    Nature.USAGE,
)
INVALID_STAGE = Code(
    "InvalidStage",
    "a stage of a stream is named as STREAM=STAGE, two numbers, not {text}",
    "A collector was told which stage publishes a stream, and it is not two numbers: that of a stream, of 32 bits, and "
    "that of a stage, below 2^63.",
    "write for example 7=3 for stream 7 of stage 3",
    Nature.USAGE,
)
TRACE_NOT_FOUND = Code(
    "TraceNotFound",
    "nothing is known of trace {trace_id}",
    "Lineage was asked for a trace id that no run and no frame, link or window in the state store has.",
    "`clew trace RUN ROW --json` names the trace ids of rows; what processes sent is there once `clew collect` took it",
    Nature.NOT_FOUND,
)

TRACELINK_CODES = (
    INVALID_TRACE_MESSAGE,
    INVALID_NODE_ID,
    INVALID_BLOCK,
    TRACE_IDS_EXHAUSTED,
    NODE_ID_TAKEN,
    NODE_LEASE_LOST,
    FORKED_GENERATOR,
    INVALID_BOUNDS,
    ADDRESS_UNUSABLE,
    REMOTE_NOT_ALLOWED,
    INVALID_STAGE,
    TRACE_NOT_FOUND,
)
