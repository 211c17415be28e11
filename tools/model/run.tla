------------------------------- MODULE run -------------------------------
(* One run of Clew: who may drive it, what counts as done, what readers of *)
(* outputs see, and what event buses get. docs/model.md explains it.       *)
EXTENDS Naturals, Sequences

CONSTANTS
    Workers,        \* who drives runs
    Steps,          \* how many steps the run has; each writes one output
    Crashes,        \* how often a process dies, or an answer of the store is lost
    Delays,         \* how often a lease runs out although its holder lives
    Refusals,       \* how often the bus refuses an event
    Attempts,       \* how often an event is tried before it is a dead letter
    Mistake         \* what is left out on purpose; "none" is the code as it is

VARIABLES
    token,          \* of the last lease; higher with each
    leased,         \* whether the last lease still holds by the clock
    work,           \* what each worker is doing, with which token, at which step
    log,            \* the events that count: the step, and the token of who committed it
    entries,        \* places in the log that the outbox holds for the bus
    taken,          \* those that the bus has taken and that are not confirmed yet
    received,       \* how often the bus got each
    refused,        \* how often the bus refused each
    dead,           \* those that are dead letters
    staged,         \* outputs that are written but not visible: step and token
    place,          \* the output that readers see, for each step: the token of who wrote it
    crashes, delays, refusals

vars == <<token, leased, work, log, entries, taken, received, refused, dead, staged, place, crashes, delays, refusals>>
store == <<token, leased, log, entries>>
bus == <<taken, received, refused, dead, refusals>>
storage == <<staged, place>>

Numbers == 1..Steps
Idle == [at |-> "idle", token |-> 0, step |-> 0]

Init ==
    /\ token = 0 /\ leased = FALSE
    /\ work = [w \in Workers |-> Idle]
    /\ log = <<>> /\ entries = {} /\ taken = {} /\ dead = {}
    /\ received = [n \in Numbers |-> 0] /\ refused = [n \in Numbers |-> 0]
    /\ staged = {} /\ place = [n \in Numbers |-> 0]
    /\ crashes = 0 /\ delays = 0 /\ refusals = 0

Done == {log[i].step : i \in 1..Len(log)}
Ended == Numbers \subseteq Done
Next_step == IF Ended THEN Steps + 1 ELSE CHOOSE n \in Numbers : n \notin Done /\ \A m \in 1..(n-1) : m \in Done
Moves(w, at) == work' = [work EXCEPT ![w].at = at]
Rests(w) == work' = [work EXCEPT ![w] = Idle]
Holds(w) == work[w].at # "idle" /\ work[w].token = token
Name(w) == [step |-> work[w].step, token |-> IF Mistake = "shared staging" THEN 0 ELSE work[w].token]

(* Leases *)

\* A signal may take a run that has ended, too. That is counted, so that the model stays small.
Claim(w) ==
    /\ work[w].at = "idle" /\ ~leased
    /\ IF Ended THEN delays < Delays /\ delays' = delays + 1 ELSE UNCHANGED delays
    /\ token' = IF Mistake = "same token" /\ token > 0 THEN token ELSE token + 1
    /\ leased' = TRUE
    /\ work' = [work EXCEPT ![w] = [at |-> "working", token |-> token', step |-> Next_step]]
    /\ UNCHANGED <<log, entries, bus, storage, crashes>>

\* The clock: the lease of a process that died runs out, and now and then one of a process that was only slow.
RunsOut ==
    /\ leased
    /\ \/ (\A w \in Workers : ~Holds(w)) /\ Mistake # "leases for ever" /\ UNCHANGED delays
       \/ delays < Delays /\ delays' = delays + 1
    /\ leased' = FALSE
    /\ UNCHANGED <<token, work, log, entries, bus, storage, crashes>>

Keep(w) ==
    /\ Holds(w) /\ ~leased
    /\ leased' = TRUE
    /\ UNCHANGED <<token, work, log, entries, bus, storage, crashes, delays>>

\* Before the end, too: a worker is asked to stop, or the run fails or waits for a person.
Release(w) ==
    /\ work[w].at = "working"
    /\ IF work[w].step > Steps THEN UNCHANGED delays ELSE delays < Delays /\ delays' = delays + 1
    /\ IF work[w].token = token THEN token' = token + 1 /\ leased' = FALSE ELSE UNCHANGED <<token, leased>>
    /\ Rests(w)
    /\ UNCHANGED <<log, entries, bus, storage, crashes>>

(* A step: written to a place of its own, the token checked, older attempts swept away, made visible, committed *)

Stage(w) ==
    /\ work[w].at = "working" /\ work[w].step <= Steps
    /\ staged' = staged \cup {Name(w)}
    /\ Moves(w, "staged")
    /\ UNCHANGED <<store, bus, place, crashes, delays>>

Check(w) ==
    /\ work[w].at = "staged"
    /\ IF work[w].token = token \/ Mistake = "no check"
       THEN Moves(w, "checked") /\ UNCHANGED staged
       ELSE Rests(w) /\ staged' = staged \ {Name(w)}
    /\ UNCHANGED <<store, bus, place, crashes, delays>>

Sweep(w) ==
    /\ work[w].at = "checked"
    /\ staged' = IF Mistake = "no sweep" THEN staged
                 ELSE {s \in staged : ~(s.step = work[w].step /\ s.token < Name(w).token)}
    /\ Moves(w, "swept")
    /\ UNCHANGED <<store, bus, place, crashes, delays>>

Publish(w) ==
    /\ work[w].at = "swept"
    /\ IF Name(w) \in staged
       THEN /\ place' = [place EXCEPT ![work[w].step] = work[w].token]
            /\ staged' = staged \ {Name(w)}
            /\ Moves(w, "published")
       ELSE Rests(w) /\ UNCHANGED storage
    /\ UNCHANGED <<store, bus, crashes, delays>>

Store(w) ==
    IF work[w].step \in Done /\ Mistake # "no key"
    THEN UNCHANGED <<log, entries>>
    ELSE /\ log' = Append(log, [step |-> work[w].step, token |-> work[w].token])
         /\ entries' = IF Mistake = "outbox apart" THEN entries ELSE entries \cup {Len(log) + 1}

\* The check of the token, the event and its entry in the outbox are one transaction.
Commit(w) ==
    /\ work[w].at = IF Mistake = "commit first" THEN "swept" ELSE "published"
    /\ IF work[w].token = token \/ Mistake = "no fence"
       THEN /\ Store(w)
            /\ IF Mistake = "outbox apart" THEN Moves(w, "told")
               ELSE work' = [work EXCEPT ![w].at = "working", ![w].step = @ + 1]
       ELSE Rests(w) /\ UNCHANGED <<log, entries>>
    /\ UNCHANGED <<token, leased, bus, storage, crashes, delays>>

\* The store commits, and its answer is lost: the worker cannot know, and commits again.
CommitUnanswered(w) ==
    /\ work[w].at = "published" /\ work[w].token = token /\ crashes < Crashes /\ Len(log) < 2 * Steps
    /\ Store(w)
    /\ crashes' = crashes + 1
    /\ UNCHANGED <<token, leased, work, bus, storage, delays>>

\* Only for the mistake that takes a commit that was lost for one whose answer was lost.
CommitLost(w) ==
    /\ Mistake = "lost is done" /\ work[w].at = "published" /\ crashes < Crashes
    /\ work' = [work EXCEPT ![w].at = "working", ![w].step = @ + 1]
    /\ crashes' = crashes + 1
    /\ UNCHANGED <<store, bus, storage, delays>>

\* Only for the mistake that writes the outbox in a second transaction.
Tell(w) ==
    /\ work[w].at = "told"
    /\ entries' = entries \cup {Len(log)}
    /\ work' = [work EXCEPT ![w].at = "working", ![w].step = @ + 1]
    /\ UNCHANGED <<token, leased, log, bus, storage, crashes, delays>>

Crash(w) ==
    /\ work[w].at # "idle" /\ crashes < Crashes
    /\ Rests(w)
    /\ crashes' = crashes + 1
    /\ UNCHANGED <<store, bus, storage, delays>>

(* The outbox *)

Deliver(n) ==
    /\ n \in entries /\ n \notin taken /\ ~(Mistake = "no second try" /\ refused[n] > 0)
    /\ received' = [received EXCEPT ![n] = IF @ < 2 THEN @ + 1 ELSE @]
    /\ taken' = taken \cup {n}
    /\ UNCHANGED <<store, work, refused, dead, refusals, storage, crashes, delays>>

Confirm(n) ==
    /\ n \in taken
    /\ entries' = entries \ {n} /\ taken' = taken \ {n}
    /\ UNCHANGED <<token, leased, log, work, received, refused, dead, refusals, storage, crashes, delays>>

Refuse(n) ==
    /\ n \in entries /\ n \notin taken /\ refusals < Refusals
    /\ refusals' = refusals + 1
    /\ refused' = [refused EXCEPT ![n] = @ + 1]
    /\ IF refused'[n] < Attempts THEN UNCHANGED <<entries, dead>>
       ELSE entries' = entries \ {n} /\ dead' = dead \cup {n}
    /\ UNCHANGED <<token, leased, log, work, taken, received, storage, crashes, delays>>

\* Whoever has held an entry for too long may still send it, although another one has confirmed it in the meantime.
DeliverLate(n) ==
    /\ n \in 1..Len(log) /\ n \notin entries /\ received[n] < 2 /\ (received[n] = 1 \/ n \in dead)
    /\ received' = [received EXCEPT ![n] = @ + 1]
    /\ UNCHANGED <<store, work, taken, refused, dead, refusals, storage, crashes, delays>>

\* Whoever delivers dies between the bus and the outbox; for one mistake the outbox forgets first.
DelivererDies ==
    /\ taken # {} /\ crashes < Crashes
    /\ taken' = {} /\ crashes' = crashes + 1
    /\ UNCHANGED <<store, work, received, refused, dead, refusals, storage, delays>>

ForgetFirst(n) ==
    /\ Mistake = "forget first" /\ n \in entries
    /\ entries' = entries \ {n}
    /\ UNCHANGED <<token, leased, log, work, bus, storage, crashes, delays>>

(* All together *)

Works(w) ==
    /\ Claim(w) \/ Stage(w) \/ Check(w) \/ Sweep(w) \/ Publish(w) \/ Commit(w) \/ Tell(w) \/ Release(w)
    /\ UNCHANGED refusals

Delivers(n) == Deliver(n) \/ Confirm(n)

Rest == Ended /\ (\A w \in Workers : work[w].at = "idle") /\ entries = {} /\ UNCHANGED vars

Next ==
    \/ \E w \in Workers : Works(w) \/ Keep(w) \/ CommitUnanswered(w) \/ CommitLost(w) \/ Crash(w)
    \/ \E n \in Numbers : Delivers(n) \/ DeliverLate(n) \/ Refuse(n) \/ ForgetFirst(n)
    \/ RunsOut \/ DelivererDies \/ Rest

Fair ==
    /\ \A w \in Workers : WF_vars(Works(w))
    /\ \A n \in Numbers : WF_vars(Delivers(n))
    /\ WF_vars(RunsOut)

Spec == Init /\ [][Next]_vars /\ Fair

(* What must never happen *)

EachStepOnce == \A i, j \in 1..Len(log) : log[i].step = log[j].step => i = j
InOrder == \A i \in 1..Len(log) : log[i].step = i
OneHolder == \A v, w \in Workers : Holds(v) /\ Holds(w) => v = w
ReadersSeeWhatWasCommitted == \A i \in 1..Len(log) : place[log[i].step] = log[i].token
NothingIsLost == \A i \in 1..Len(log) : i \in entries \/ i \in dead \/ received[i] > 0

CommitsHoldTheToken == [][Len(log') > Len(log) => log'[Len(log')].token = token]_vars
NoneReplacesALaterOne == [][\A n \in Numbers : place'[n] >= place[n]]_vars

(* What must happen at last, once processes stop dying *)

TheRunEnds == <>[]Ended
BusesHearOfIt == <>[](\A n \in Numbers : received[n] > 0 \/ n \in dead)
==========================================================================
