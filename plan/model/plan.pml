/*
 * The protocol of triggered plans. docs/model.md says what is modelled, what is
 * left out and which properties are checked.
 *
 * A plan lives on RANKS ranks, each of which owns OWN chunks of it. Every
 * ordered pair of ranks has a queue that passes its chains strictly in order. A
 * chain is: poll the owner's ready gate for the round, copy, add one to the
 * peer's arrival gate. PLANS plans share the queues.
 *
 * Every transition is one of these events and prints its name when a trail is
 * replayed. What a rank does, its goroutine does, except for the kernel's marks.
 *
 *   Arrive     a rank comes to the rendezvous of New or NextRound
 *   Reject     the same, with a proposal that says it cannot
 *   WrongCall  the same, for another collective than its peers'
 *   TurnAway   a rank need not wait: a peer is in Close or has ended
 *   Refuse     a rendezvous fails, also for the ranks that have yet to come
 *   Ring       the last to come prepares the round on every queue
 *   RingFail   the same, but it fails among the rings: what was rung is let go
 *   Withdraw   a rank's context ends while it waits in a rendezvous
 *   Take       a rank leaves the rendezvous with its verdict
 *   Start      a rank starts the round and launches the kernel that marks
 *   Mark       one writer has written its part of a chunk and counts its mark
 *   ExtraMark  a writer counts a mark too many
 *   Open       the writer that completed the count stores the round in ready
 *   Send       an engine passes the chain at the head of its queue
 *   Wait       a rank finds its round delivered, or that it cannot trust it
 *   WaitEnds   a rank's context ends in Wait
 *   Close      a rank begins to close; if chunks lack marks it says so first
 *   Flush      Close opens the rank's gates that are still shut
 *   Enter      the rank has come to Close and waits for its peers
 *   Crossed    the same, but a peer waits in another plan's Close: it goes on
 *   Closed     Close returns with the plan closed
 *   Closing    Close leaves its plan behind an earlier plan's waiting copies
 *   CloseEnds  a rank's context ends in Close
 *   End        a rank's body ends
 *   Proxy      all ranks have come to Close or ended: those who ended are closed
 *   Finish     all chains have passed and all kernels ended: memory is freed
 *
 * The ranks run one program, each at its own pace: New of every plan, then
 * rounds of Start, Start, Wait, NextRound, Wait, NextRound, then Close of every
 * plan in one of the two orders. At any step all of them may turn to Close. Up
 * to FAULTS mishaps happen in a run: Reject, WrongCall, RingFail, Withdraw,
 * ExtraMark, WaitEnds, CloseEnds, a rank that turns to Close alone, in an order
 * of its own, or an End before its time. A rank whose Wait failed goes on,
 * closes alone or ends; one whose NextRound failed tries again, closes or ends.
 */

#ifndef RANKS
#define RANKS 2
#endif
#ifndef PLANS
#define PLANS 2
#endif
#ifndef OWN
#define OWN 1     /* chunks of each rank in each plan */
#endif
#ifndef WRITERS
#define WRITERS 2 /* marks that complete a plan's first chunk; the others take one */
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef FAULTS
#define FAULTS 1
#endif

#define CHUNKS   (RANKS*OWN)
#define QUEUES   (RANKS*(RANKS-1))
#ifdef PASS_LATER
#define DEPTH    (2*PLANS*OWN) /* the last round is sent, but may not be passed */
#else
#define DEPTH    (PLANS*OWN) /* a plan has one round at a time on a queue */
#endif
#define GENS     (PLANS*ROUNDS + FAULTS + 1)
#define EVERYONE ((1<<RANKS)-1)

#define Bit(i)   (1<<(i))
#define First(r) ((r)*OWN)
#define Owner(c) ((c)/OWN)
#define Marks(c) ((c) -> 1 : WRITERS)
#define From(q)  ((q)/(RANKS-1))
#define To(q)    ((q)%(RANKS-1) + ((q)%(RANKS-1) >= From(q)))
#define At(c,r)  ((c)*RANKS+(r))

/* A chain packs its plan, chunk and round; 0 is an empty slot. */
#define Chain(p,c,n) (((n)*PLANS+(p))*CHUNKS+(c))
#define PlanOf(x)    (((x)/CHUNKS)%PLANS)
#define ChunkOf(x)   ((x)%CHUNKS)
#define RoundOf(x)   ((x)/(CHUNKS*PLANS))

#define NONE 0 /* before New */
mtype = { PREPARED, STARTED, DONE, FAILED, CLOSING, CLOSED };
mtype = { OK, REFUSED, BROKEN };

typedef Plan {
	mtype state[RANKS];
	byte round[RANKS];          /* prepared for that rank; 0 before New */
	byte ready[CHUNKS];         /* gates: only ever grow */
	byte arrival[CHUNKS*RANKS];
	byte writers[CHUNKS];
	byte opening;               /* chunks whose last writer has yet to store ready */
	byte launched;              /* ranks whose kernel of this round was launched */
	byte queued[QUEUES];        /* its chains on each queue */
	byte failed;                /* ranks on which it became FAILED */
	byte came;                  /* ranks that came to Close, or were closed by proxy */
	bool cut;                   /* gates were opened without their marks */
	byte freed;                 /* ranks whose memory for the plan is freed */
	/* what the properties speak of */
	byte written[CHUNKS];       /* parts written by their writers, over all rounds */
	byte landed[CHUNKS*RANKS];  /* the round whose bytes a rank holds */
	byte handed[RANKS];         /* the round for which it has handed its buffer back */
	byte early;                 /* chunks sent this round before they were written */
};
typedef Queue { byte length; byte slot[DEPTH] };

Plan plan[PLANS];
Queue queue[QUEUES];

/* The rendezvous: the k-th collective of each rank is generation k. One is open
 * at a time; verdicts are kept for the ranks that have yet to come to them. */
byte gen[RANKS];
mtype verdict[GENS];
byte met, topic; /* who waits in the open generation, and in which step */
bool unsound;    /* somebody brought a rejection */

byte ended;             /* ranks whose body has ended */
byte inside[RANKS];     /* 1 + the plan in whose Close a rank waits */
byte waiting;           /* ranks in Wait */

byte faults;            /* mishaps that may still happen */
bool extraDue;          /* an extra mark is to come ... */
byte extraAt = 255;     /* ... for this chunk of this plan */
byte leaveAt, furthest; /* the step at which all turn to Close; that one has passed */
byte closeFirst = 255;  /* the plan that all close first */

/* ---- quantifiers, unrolled by the preprocessor ---- */

#if RANKS == 2
#define EveryRank(f,x) (f(x,0) && f(x,1))
#define AnyRank(f,x)   (f(x,0) || f(x,1))
#define AnyQueue(f,p)  (f(p,0) || f(p,1))
#else
#define EveryRank(f,x) (f(x,0) && f(x,1) && f(x,2))
#define AnyRank(f,x)   (f(x,0) || f(x,1) || f(x,2))
#define AnyQueue(f,p)  (f(p,0) || f(p,1) || f(p,2) || f(p,3) || f(p,4) || f(p,5))
#endif
#if OWN == 1
#define AnyOwn(f,p,r)  f(p,First(r))
#else
#define AnyOwn(f,p,r)  (f(p,First(r)) || f(p,First(r)+1))
#endif
#if CHUNKS == 2
#define EveryChunk(f,p,r) (f(p,r,0) && f(p,r,1))
#elif CHUNKS == 3
#define EveryChunk(f,p,r) (f(p,r,0) && f(p,r,1) && f(p,r,2))
#else
#define EveryChunk(f,p,r) (f(p,r,0) && f(p,r,1) && f(p,r,2) && f(p,r,3))
#endif

/* ---- what gates and queues say ---- */

#ifdef RESET_GATES /* every round starts from zeroed gates and opens them with 1 */
#define Goal(n) 1
#else
#define Goal(n) (n)
#endif

#define Round(p,c)     plan[p].round[Owner(c)]
#define Open(x)        (plan[PlanOf(x)].ready[ChunkOf(x)] >= Goal(RoundOf(x)))
#define Shut(p,c)      (plan[p].ready[c] < Goal(Round(p,c)))
#define Arrived(p,c,r) (plan[p].arrival[At(c,r)] >= Goal(Round(p,c)))
#define Short(p,c)     (plan[p].writers[c] < Marks(c)*Goal(Round(p,c)))
#define Extra(p,c)     (plan[p].writers[c] > Marks(c)*Goal(Round(p,c)))
#define Owed(p,c)      ((plan[p].launched & Bit(Owner(c))) && \
	plan[p].written[c] < Marks(c)*Round(p,c))
#define Due(p,c)       (extraDue && extraAt == (p)*CHUNKS+(c))
#define Busy(p,c)      (Owed(p,c) || (plan[p].opening & Bit(c)) || Due(p,c))
#define Idle(p,r)      !AnyOwn(Busy,p,r)
#define Queued(p,q)    (plan[p].queued[q] > 0)
#define Blocked(p,q)   (Queued(p,q) && PlanOf(queue[q].slot[0]) != (p) && \
	!(Open(queue[q].slot[0]) && LetGo(PlanOf(queue[q].slot[0]),From(q))))
#define LetGo(p,r)     /* it needs nobody to go on */ \
	(plan[p].cut || plan[p].state[r] == CLOSING || plan[p].state[r] == CLOSED)
#define Sending(p,r)   (Queued(p,(r)*(RANKS-1)) || Queued(p,(r)*(RANKS-1)+RANKS-2))
#define Drained(p)     !AnyQueue(Queued,p)

/* To its owner a chunk is delivered when it is ready and has arrived at every
 * peer, to the others when it has arrived there. */
#define There(x,r)       (Owner((x)%CHUNKS) == (r) || Arrived((x)/CHUNKS,(x)%CHUNKS,r))
#define Everywhere(p,c)  (!Shut(p,c) && EveryRank(There,(p)*CHUNKS+(c)))
#define Delivered(p,r,c) (Owner(c) == (r) -> Everywhere(p,c) : Arrived(p,c,r))

/* ---- rules, and the mutations that drop them ---- */

#ifdef OPEN_FIRST /* the first of a chunk's writers opens its gate */
#define Opens(p,c) (plan[p].writers[c] == Marks(c)*(Goal(Round(p,c))-1)+1)
#else
#define Opens(p,c) (plan[p].writers[c] == Marks(c)*Goal(Round(p,c)))
#endif

#ifdef IGNORE_EXTRA /* Wait does not count marks */
#define ExtraMarks(p,r) false
#else
#define ExtraMarks(p,r) AnyOwn(Extra,p,r)
#endif

#ifdef IGNORE_CUT /* Wait trusts what a Close has let go */
#define Cut(p) false
#else
#define Cut(p) plan[p].cut
#endif

/* A rank has ended and no kernel of it runs that could still mark. */
#define Deserts(p,r) ((ended & Bit(r)) && Idle(0,r) && Idle(PLANS-1,r) && AnyOwn(Short,p,r))
#ifdef IGNORE_GONE /* Wait hopes for the marks of a rank that has ended */
#define Deserted(p) false
#else
#define Deserted(p) AnyRank(Deserts,p)
#endif

/* Rank s waits in a Close to which rank r has not come, and r comes to a
 * collective that s cannot come to before. */
#define Holds(r,s) (inside[s] && !(plan[inside[s]-1].came & Bit(r)) && gen[s] <= gen[r])
#ifdef IGNORE_CLOSE /* collectives wait for a rank that waits in Close */
#define Vain(p,r) ended
#else
#define Vain(p,r) (ended || plan[p].came || AnyRank(Holds,r))
#endif

/* Rank s waits in another Close, to which r has not come, nor s to this one. */
#define Faces(p,s) (inside[s] && inside[s] != (p)+1 && \
	!(plan[inside[s]-1].came & Bit(r)) && !(plan[p].came & Bit(s)))
#ifdef IGNORE_CROSSING /* two Closes wait for each other */
#define Crosses(p) false
#else
#define Crosses(p) AnyRank(Faces,p)
#endif

#ifdef HOLD_CLOSE /* Close waits behind an earlier plan's copies */
#define Behind(p) false
#else
#define Behind(p) AnyQueue(Blocked,p)
#endif

#ifdef FREE_BUSY /* memory is freed under running kernels */
#define Unused(p) Drained(p)
#else
#define Unused(p) (Drained(p) && EveryRank(Idle,p))
#endif

/* ---- properties ---- */

#define Require(rule, holds) \
	if :: (holds) :: else -> printf("violated: "); printf(rule); printf("\n"); assert(false) fi

/* Deadlines are long: they end a call only when nothing else can happen, which
 * must be so only if a rank waits for marks that a peer in Close of another
 * plan will not make. */
#define InClose(x,r) inside[r]
inline Deadline() {
	Require("a deadline is needed only where a Wait crosses a Close",
		PLANS > 1 && waiting && AnyRank(InClose,0))
}

#define HandedBack(x,r) (plan[PlanOf(x)].handed[r] >= RoundOf(x))
#define Written(x)      (plan[PlanOf(x)].written[ChunkOf(x)] >= Marks(ChunkOf(x))*RoundOf(x))

/* Trust checks what Wait promises. Only the owner can tell that a chunk was
 * sent early by an extra mark. */
inline Trust(p) {
	for (c : 0 .. CHUNKS-1) {
		Require("Wait fails when a chunk was sent before its marks",
			!(plan[p].early & Bit(c)) || (Owner(c) != r && extraAt == p*CHUNKS+c));
		for (i : 0 .. RANKS-1) {
			Require("Wait returns with the bytes of its round",
				Owner(c) == i || (Owner(c) != r && i != r) ||
				plan[p].landed[At(c,i)] >= plan[p].round[r])
		}
	}
	c = 0; i = 0
}

/* ---- queues and their engines ---- */

/* Prepare puts the chunks that queue q carries for round n of plan p on it. */
inline Prepare(p, q, n) {
	for (c : First(From(q)) .. First(From(q))+OWN-1) {
		Require("a queue holds one round of a plan", queue[q].length < DEPTH);
		queue[q].slot[queue[q].length] = Chain(p, c, n);
		queue[q].length++;
		plan[p].queued[q]++
	}
	c = 0
}

inline Send(q) {
	x = queue[q].slot[0]; p = PlanOf(x); c = ChunkOf(x);
	printf("queue %d>%d: Send plan %d chunk %d round %d\n", From(q), To(q), p, c, RoundOf(x));
	Require("no memory is freed before the last copy that uses it",
		!(plan[p].freed & (Bit(From(q)) | Bit(To(q)))));
	Require("no byte of a round lands before every rank handed the last one back",
		EveryRank(HandedBack, x));
	Require("no chunk is sent before its marks",
		Written(x) || plan[p].cut || extraAt == p*CHUNKS+c);
	if :: Written(x) :: else -> plan[p].early = plan[p].early | Bit(c) fi;
	plan[p].landed[At(c, To(q))] = RoundOf(x);
	plan[p].arrival[At(c, To(q))]++;
	x = 0; p = 0; c = 0
}

inline Pass(q) {
	p = PlanOf(queue[q].slot[0]);
	plan[p].queued[q]--;
	queue[q].length--;
	for (i : 0 .. DEPTH-2) { queue[q].slot[i] = queue[q].slot[i+1] }
	queue[q].slot[DEPTH-1] = 0;
	p = 0; i = 0
}

proctype Engine(byte q) {
	byte x, p, c, i;
end:	do
	:: d_step { queue[q].length > 0 && Open(queue[q].slot[0]) -> Send(q)
#ifndef PASS_LATER
		; Pass(q) }
#else /* for histories of engines: a chain is seen sent before it is passed */
		};
		d_step { Pass(q) }
#endif
	od
}

/* ---- kernels ---- */

inline StoreReady(p, c) {
	Require("no kernel marks in memory that is freed", !(plan[p].freed & Bit(Owner(c))));
	Require("gates only grow", plan[p].ready[c] <= Goal(Round(p,c)));
	plan[p].ready[c] = Goal(Round(p,c))
}

inline Count(p, c) {
	Require("no kernel marks in memory that is freed", !(plan[p].freed & Bit(Owner(c))));
	plan[p].writers[c]++;
	if
	:: Opens(p,c) ->
#ifdef MARK_OPENS /* fewer states: count and store are one step */
		StoreReady(p, c)
#else
		plan[p].opening = plan[p].opening | Bit(c)
#endif
	:: else
	fi
}

/* Kernel is every writer of one chunk, over all rounds. */
proctype Kernel(byte p; byte c) {
end:	do
	:: d_step { Owed(p, c) ->
		printf("rank %d: Mark plan %d chunk %d\n", Owner(c), p, c);
		plan[p].written[c]++;
		Count(p, c) }
	:: d_step { Due(p, c) ->
		printf("rank %d: ExtraMark plan %d chunk %d\n", Owner(c), p, c);
		extraDue = false;
		Count(p, c) }
	:: d_step { plan[p].opening & Bit(c) ->
		printf("rank %d: Open plan %d chunk %d\n", Owner(c), p, c);
		plan[p].opening = plan[p].opening & ~Bit(c);
		StoreReady(p, c) }
	od
}

/* ---- the rendezvous ---- */

#define BARRIER 255 /* no step */

inline Disperse() { met = 0; topic = 0; unsound = false }

inline Decide(v) {
	Require("a generation has one verdict", !verdict[gen[r]]);
	verdict[gen[r]] = v;
	Disperse()
}

inline Refuse() {
	printf("rank %d: Refuse\n", r);
	Decide(REFUSED)
}

/* Ring is done with every queue locked. */
inline Ring(p) {
	if
	:: printf("rank %d: Ring plan %d\n", r, p); k = QUEUES
	:: faults > 0 -> faults--; select (k : 1 .. QUEUES-1);
		printf("rank %d: RingFail plan %d\n", r, p)
	fi;
#ifndef RING_EARLY
	for (q : 0 .. k-1) { Prepare(p, q, plan[p].round[0]+1) }
#endif
	for (i : 0 .. RANKS-1) { plan[p].round[i]++ }
	plan[p].launched = 0;
	plan[p].early = 0;
	if
	:: k == QUEUES -> Decide(OK)
	:: else ->
		plan[p].cut = true;
		for (c : 0 .. CHUNKS-1) { plan[p].ready[c] = Goal(Round(p,c)) }
		if
		:: plan[p].round[0] == 1 -> plan[p].came = EVERYONE /* the world closes it */
		:: else
		fi;
		Decide(BROKEN)
	fi;
	q = 0; i = 0; c = 0
}

inline Vote(p) {
	met = met | Bit(r);
#ifdef RING_EARLY /* a rank rings its own queues before the vote */
	for (q : r*(RANKS-1) .. r*(RANKS-1)+RANKS-2) { Prepare(p, q, plan[p].round[r]+1) }
	q = 0;
#endif
	if
	:: met < EVERYONE
	:: met == EVERYONE && (unsound || topic == BARRIER) -> Refuse()
	:: met == EVERYONE && !(unsound || topic == BARRIER) -> Ring(p)
	fi
}

inline Arrive(p) {
	if
	:: verdict[gen[r]] -> printf("rank %d: Arrive plan %d\n", r, p) /* too late */
	:: !verdict[gen[r]] && Vain(p,r) -> printf("rank %d: TurnAway plan %d\n", r, p)
	:: else ->
		k = step;
		if
		:: plan[p].state[r] != FAILED -> printf("rank %d: Arrive plan %d\n", r, p)
		:: plan[p].state[r] == FAILED -> unsound = true;
			printf("rank %d: Reject plan %d\n", r, p)
		:: faults > 0 -> faults--; unsound = true;
			printf("rank %d: Reject plan %d\n", r, p)
		:: faults > 0 -> faults--; k = BARRIER;
			printf("rank %d: WrongCall plan %d\n", r, p)
		fi;
		if
		:: met && topic != k -> Refuse()
		:: else -> topic = k; Vote(p)
		fi
	fi;
	k = 0
}

inline Fail(p) {
	plan[p].state[r] = FAILED;
	plan[p].failed = plan[p].failed | Bit(r)
}

inline NoTrace(p) {
	for (q : r*(RANKS-1) .. r*(RANKS-1)+RANKS-2) {
		for (i : 0 .. DEPTH-1) {
			Require("a round that is refused leaves no trace",
				PlanOf(queue[q].slot[i]) != p || RoundOf(queue[q].slot[i]) <= plan[p].round[r])
		}
	}
	q = 0; i = 0
}

inline Take(p) {
	printf("rank %d: Take plan %d %e\n", r, p, got);
	if
	:: got == OK -> plan[p].state[r] = PREPARED
	:: got == BROKEN && plan[p].state[r] != NONE -> Fail(p)
	:: got == BROKEN && plan[p].state[r] == NONE -> plan[p].state[r] = CLOSING
	:: got == REFUSED ->
		NoTrace(p);
		plan[p].handed[r]--;
		if :: plan[p].failed -> Fail(p) :: else fi
	fi
}

inline TakeVerdict() {
	Require("all ranks get the same verdict", got == verdict[gen[r]]);
	gen[r]++;
	Require("generations suffice", gen[r] < GENS)
}

/* AwaitVerdict leaves the verdict in got. A rank that neither waits nor has a
 * verdict was turned away: its collective has not taken place. */
inline AwaitVerdict(p) {
	if
	:: verdict[gen[r]] -> got = verdict[gen[r]]; TakeVerdict()
	:: !verdict[gen[r]] && !(met & Bit(r)) -> got = REFUSED
	:: (met & Bit(r)) && faults > 0 -> faults--;
		printf("rank %d: Withdraw\n", r); Refuse(); got = REFUSED; TakeVerdict()
#ifdef LATE_WITHDRAW /* a context withdraws a rank after the last one came */
	:: verdict[gen[r]] == OK && faults > 0 -> faults--;
		printf("rank %d: Withdraw\n", r); got = REFUSED; TakeVerdict()
#endif
	fi;
	Take(p)
}

/* ---- rounds ---- */

inline Start(p) {
	printf("rank %d: Start plan %d round %d\n", r, p, plan[p].round[r]);
	plan[p].state[r] = STARTED;
	plan[p].launched = plan[p].launched | Bit(r);
#ifdef RESET_GATES
	for (c : 0 .. CHUNKS-1) {
		if
		:: Owner(c) == r -> plan[p].ready[c] = 0; plan[p].writers[c] = 0
		:: else -> plan[p].arrival[At(c,r)] = 0
		fi
	}
	c = 0;
#endif
	if
	:: true
	:: faults > 0 && extraAt == 255 -> faults--; extraDue = true; extraAt = p*CHUNKS+First(r)
	fi
}

inline Wait(p) {
	if
	:: ExtraMarks(p,r) || Cut(p) || !EveryChunk(Delivered,p,r) -> Fail(p)
	:: else -> Trust(p); plan[p].state[r] = DONE
	fi;
	printf("rank %d: Wait plan %d %e\n", r, p, plan[p].state[r])
}

inline WaitEnds(p) {
	printf("rank %d: WaitEnds plan %d\n", r, p);
	Fail(p)
}

/* What is launched ends first, then gates are looked at, then who opened them. */
inline AwaitRound(p) {
	if
	:: Idle(p,r) && (EveryChunk(Delivered,p,r) || ExtraMarks(p,r) || Deserted(p)) -> Wait(p)
	:: faults > 0 -> faults--; WaitEnds(p)
	:: timeout -> Deadline(); WaitEnds(p)
	fi;
	waiting = waiting & ~Bit(r)
}

/* ---- closing ---- */

#define Gathered(p) ((plan[p].came | ended) == EVERYONE)

inline OpenGates(p, r) {
	for (c : First(r) .. First(r)+OWN-1) {
		if
		:: Shut(p,c) -> plan[p].ready[c] = Goal(Round(p,c))
		:: else
		fi
	}
	c = 0
}

inline Close(p) {
	printf("rank %d: Close plan %d\n", r, p);
	plan[p].state[r] = CLOSING;
	plan[p].handed[r] = plan[p].round[r];
	if
	:: AnyOwn(Short,p,r) -> plan[p].cut = true /* before a gate opens */
	:: else
	fi
}

inline Flush(p) {
	printf("rank %d: Flush plan %d\n", r, p);
#ifndef KEEP_SHUT /* Close leaves gates shut */
	OpenGates(p, r)
#endif
}

inline Enter(p) {
	plan[p].came = plan[p].came | Bit(r);
#ifndef IGNORE_CLOSE
	met = met & plan[p].came; /* the others are turned away */
	if :: met :: else -> Disperse() fi;
#endif
	if
	:: !Gathered(p) && Crosses(p) -> printf("rank %d: Crossed plan %d\n", r, p)
	:: else -> printf("rank %d: Enter plan %d\n", r, p); inside[r] = p+1
	fi
}

inline AwaitClose(p) {
	if
	:: !inside[r]
	:: inside[r] && (plan[p].freed & Bit(r)) -> plan[p].state[r] = CLOSED;
		printf("rank %d: Closed plan %d\n", r, p)
	:: inside[r] && Gathered(p) && Behind(p) ->
		printf("rank %d: Closing plan %d\n", r, p)
	:: inside[r] && faults > 0 -> faults--;
		printf("rank %d: CloseEnds plan %d\n", r, p)
	:: timeout -> Deadline();
		printf("rank %d: CloseEnds plan %d\n", r, p)
#ifdef FREE_EARLY /* a rank frees its memory when its own queues have drained */
	:: inside[r] && !Sending(p,r) && Idle(p,r) -> plan[p].freed = plan[p].freed | Bit(r);
		plan[p].state[r] = CLOSED; printf("rank %d: Closed plan %d\n", r, p)
#endif
	fi;
	inside[r] = 0
}

inline End() {
	printf("rank %d: End\n", r);
	ended = ended | Bit(r);
	Disperse()
}

/* ---- the world ---- */

#define Exists(p)    (plan[p].round[0] + plan[p].round[1] > 0)
#define Orphaned(p)  (Exists(p) && Gathered(p) && plan[p].came != EVERYONE)
#define Finishing(p) (Exists(p) && plan[p].came == EVERYONE && Unused(p) && plan[p].freed != EVERYONE)
#define Settled(p)   (!Exists(p) || plan[p].freed == EVERYONE)

inline Proxy(p) {
	printf("world: Proxy plan %d\n", p);
	for (i : 0 .. RANKS-1) {
		if
		:: plan[p].came & Bit(i)
		:: else ->
			if :: AnyOwn(Short,p,i) -> plan[p].cut = true :: else fi;
			plan[p].handed[i] = plan[p].round[i];
#ifndef NO_PROXY /* nobody opens the gates of a rank that is gone */
			OpenGates(p, i)
#endif
		fi
	}
	plan[p].came = EVERYONE; i = 0
}

inline Finish(p) {
	printf("world: Finish plan %d\n", p);
	plan[p].freed = EVERYONE
}

/* ---- the ranks' common program ---- */

/* Step s concerns plan Which(s): New of each plan, then for each round Start of
 * each, then Wait and NextRound of one after the other. */
#define ROUND      (3*PLANS)
#define LAST       (PLANS+1 + ROUNDS*ROUND)
#define In(s)      (((s)-PLANS-1)%ROUND)
#define IsNew(s)   ((s) <= PLANS)
#define IsStart(s) (!IsNew(s) && (s) < LAST && In(s) < PLANS)
#define IsWait(s)  (!IsNew(s) && (s) < LAST && In(s) >= PLANS && (In(s)-PLANS)%2 == 0)
#define IsNext(s)  (!IsNew(s) && (s) < LAST && In(s) >= PLANS && (In(s)-PLANS)%2 == 1)
#define IsVote(s)  (IsNew(s) || IsNext(s))
#define Which(s)   (IsNew(s) -> (s)-1 : (In(s) < PLANS -> In(s) : (In(s)-PLANS)/2))
#define Over(s)    ((s) > LAST-ROUND) /* no NextRound in the last round */

#define GoesOn (leaveAt != step)
#define Turns  (leaveAt == step || (!leaveAt && step > furthest) || step == LAST)

inline Onward() {
	p = Which(step);
	if :: !leaveAt && step > furthest -> furthest = step :: else fi
}

inline Advance() {
	step++;
	got = 0;
	if :: IsNext(step) && Over(step) -> step++ :: else fi
}

inline ChooseOrder() {
	if
	:: alone || closeFirst == 255 -> select (first : 0 .. PLANS-1)
	:: else -> first = closeFirst
	fi;
	if :: !alone -> closeFirst = first :: else fi;
	step = 0; got = 0; p = 0
}

#define Has(p)   (plan[p].state[r] != NONE && plan[p].state[r] != CLOSING && \
	plan[p].state[r] != CLOSED)
#define Last     (PLANS-1-first)
#define HasAny   (Has(first) || Has(Last))
#define Resigned (got == BROKEN || plan[p].state[r] == FAILED || Vain(p,r))

#ifdef NO_BARRIER
inline GoAlone(p) {
	plan[p].round[r]++;
	for (q : r*(RANKS-1) .. r*(RANKS-1)+RANKS-2) { Prepare(p, q, plan[p].round[r]) }
	plan[p].launched = plan[p].launched & ~Bit(r);
	q = 0; verdict[gen[r]] = OK
}
#endif

proctype Rank(byte r) {
	byte step = 1, p, q, c, i, k, first;
	bool alone; /* closes in an order of its own */
	mtype got;

	do
	:: atomic { IsVote(step) && GoesOn -> Onward(); plan[p].handed[r]++;
#ifdef NO_BARRIER /* each rank goes on by itself after the first round */
		if
		:: IsNew(step) -> Arrive(p)
		:: else -> if :: plan[p].state[r] == DONE -> GoAlone(p) :: else -> goto leave fi
		fi };
#else
		Arrive(p) };
#endif
		atomic { AwaitVerdict(p);
			if
			:: got == OK -> Advance()
			:: got == REFUSED && !Resigned -> got = 0 /* all try again */
			:: got != OK && Resigned -> goto leave
			:: got != OK && Resigned -> goto over
			fi }

	:: atomic { IsStart(step) && GoesOn -> Onward();
		if :: plan[p].state[r] == PREPARED -> Start(p) :: else fi;
		Advance() }

	:: atomic { IsWait(step) && GoesOn -> Onward(); waiting = waiting | Bit(r) };
		atomic { AwaitRound(p);
			if
			:: Advance()
			:: plan[p].state[r] == FAILED -> alone = true; goto leave
			:: plan[p].state[r] == FAILED -> goto over
			fi }

	:: atomic { Turns -> leaveAt = step; furthest = 0; goto leave }
	:: atomic { GoesOn && step < LAST && faults > 0 -> faults--; alone = true; goto leave }
	:: atomic { faults > 0 -> faults--; goto over }
	od;

leave:	atomic { ChooseOrder() };
	do
	:: atomic { HasAny -> p = (Has(first) -> first : Last); Close(p) };
		atomic { Flush(p) };
		atomic { Enter(p) };
		atomic { AwaitClose(p) }
	:: atomic { HasAny && faults > 0 -> faults--; goto over }
	:: atomic { !HasAny -> goto over }
	od;
over:	atomic { End(); step = 0; got = 0; p = 0; first = 0; alone = false }
}

init {
	byte i, p, c;
	atomic {
		select (i : 0 .. FAULTS); faults = i;
		for (i : 0 .. QUEUES-1) { run Engine(i) }
		for (p : 0 .. PLANS-1) {
			for (i : 0 .. CHUNKS-1) { run Kernel(p, i) }
		}
		for (i : 0 .. RANKS-1) { run Rank(i) }
		i = 0; p = 0
	}
	do
	:: d_step { Orphaned(0) -> Proxy(0) }
	:: d_step { Finishing(0) -> Finish(0) }
#if PLANS > 1
	:: d_step { Orphaned(1) -> Proxy(1) }
	:: d_step { Finishing(1) -> Finish(1) }
#endif
	:: atomic { ended == EVERYONE && Settled(0) && Settled(PLANS-1) ->
		printf("world: Closed\n");
		for (i : 0 .. QUEUES-1) { Require("queues end empty", queue[i].length == 0) }
		break }
	od
}
