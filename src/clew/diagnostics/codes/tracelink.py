"""What can be wrong with trace ids, node ids and the messages that carry them."""

from clew.diagnostics.diagnostic import Code, Nature

INVALID_TRACE_MESSAGE = Code(
    "InvalidTraceMessage",
    "{problem}",
    "The bytes are not a valid FrameDescriptor or TraceLinkSet, or the values do not fit into one: no parents, a "
    "duplicate parent, a trace id of 0, a number too large for its field, a truncated message.",
    "the message schemas are installed with Clew, in clew/tracelink/schemas",
)
INVALID_NODE_ID = Code(
    "InvalidNodeId",
    "{node_id} is not a valid node id; the range is 0 to {largest}",
    "The configured node id does not fit into a trace id.",
    "choose one in this range, or let Clew lease one",
    Nature.USAGE,
)
INVALID_BLOCK = Code(
    "InvalidBlock",
    "{problem}",
    "The requested block of trace ids, or an id in it, cannot exist.",
    "a block holds 0 or more ids, and its ordinals count from 0",
    Nature.USAGE,
)
TRACE_IDS_EXHAUSTED = Code(
    "TraceIdsExhausted",
    "node {node_id} has used up its trace ids, which end at {until_ms} ms since 1970",
    "The node lease was not renewed in time, or the 41-bit timestamp is full (in September 2039).",
    "check that keepalives reach the state store",
)
NODE_ID_TAKEN = Code(
    "NodeIdTaken",
    "{problem}",
    "Another process holds the node id, its cooldown is not over yet, or no node id is free.",
    "let Clew choose the node id, or wait for the other process to end and the cooldown to pass",
)
NODE_LEASE_LOST = Code(
    "NodeLeaseLost",
    "lost the lease of node {node_id}: {reason}",
    "The process no longer holds its node id: the lease expired or was revoked.",
    "restart the process; it will lease a node id again",
)
NO_SUCH_NODE = Code(
    "NoSuchNode",
    "node id {node_id} has no such lease",
    "The state store knows no lease of this node id, or none with this term.",
    "`clew nodes` lists the node ids and their last leases",
    Nature.NOT_FOUND,
)
FORKED_GENERATOR = Code(
    "ForkedGenerator",
    "a trace id generator created in process {made_in} was used in process {used_in}",
    "A forked process used the generator of its parent. Both would mint the same ids.",
    "create a generator with a separate node id in each process",
    Nature.USAGE,
)
INVALID_BOUNDS = Code(
    "InvalidBounds",
    "{problem}",
    "The range of a window or artifact must be either a range of stream positions or a range of times.",
    "give a start and an end of the same kind, with the start first",
    Nature.USAGE,
)
ADDRESS_UNUSABLE = Code(
    "AddressUnusable",
    "the collector cannot listen at {address}: {reason}",
    "The address is malformed, does not resolve, or is in use.",
    "use a host and a free port, such as 127.0.0.1:9904",
    Nature.USAGE,
)
REMOTE_NOT_ALLOWED = Code(
    "RemoteNotAllowed",
    "{address} is reachable from other machines",
    "The collector would listen beyond this machine. It accepts datagrams from anyone, and their senders cannot be "
    "verified.",
    "use 127.0.0.1, or --allow-remote on a trusted network",
    Nature.USAGE,
)
INVALID_STAGE = Code(
    "InvalidStage",
    "expected STREAM=STAGE, two numbers, not {text}",
    "The stage of a stream is given as two numbers: a 32-bit stream id and a stage id below 2^63.",
    "write, for example, 7=3 for stream 7 of stage 3",
    Nature.USAGE,
)
TRACE_NOT_FOUND = Code(
    "TraceNotFound",
    "unknown trace id {trace_id}",
    "No run, frame, link or window in the state store has this trace id.",
    "`clew trace RUN ROW --json` shows the trace ids of rows; ids from other processes appear once `clew collect` "
    "has stored them",
    Nature.NOT_FOUND,
)

TRACELINK_CODES = (
    INVALID_TRACE_MESSAGE,
    INVALID_NODE_ID,
    INVALID_BLOCK,
    TRACE_IDS_EXHAUSTED,
    NODE_ID_TAKEN,
    NODE_LEASE_LOST,
    NO_SUCH_NODE,
    FORKED_GENERATOR,
    INVALID_BOUNDS,
    ADDRESS_UNUSABLE,
    REMOTE_NOT_ALLOWED,
    INVALID_STAGE,
    TRACE_NOT_FOUND,
)
