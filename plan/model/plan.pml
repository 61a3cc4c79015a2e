/*
 * The protocol of triggered plans. docs/model.md says what is modelled, what is
 * left out and which properties are checked.
 *
 * A plan lives on RANKS ranks, each of which owns OWN chunks of it. Every
 * ordered pair of ranks has a queue that runs its chains strictly in order. A
 * chain is: poll the owner's ready gate for the round, copy, add one to the
 * peer's arrival gate. PLANS plans share the queues.
 *
 * Every transition is one of these events, and prints its name when a trail is
 * replayed. "rank" means that rank's goroutine.
 *
 *   Arrive     a rank joins the rendezvous of New or NextRound with its proposal
 *   Reject     the same, with a proposal that says it cannot
 *   WrongCall  the same, for another collective than its peers'
 *   Refuse     a rendezvous fails for every rank, also for those yet to arrive
 *   Ring       the last to arrive prepares the round on every queue
 *   RingFail   the same, but it fails among the rings: what was rung is flushed
 *   Take       a rank leaves the rendezvous with its verdict
 *   Withdraw   a rank's context ends while it waits in a rendezvous
 *   Start      a rank starts the round and launches the kernel that marks
 *   Mark       one writer has written its part of a chunk and counts its mark
 *   ExtraMark  a writer counts a mark too many
 *   Open       the writer that completed the count stores the round in ready
 *   Send       an engine passes the chain at the head of its queue
 *   Wait       a rank finds the round delivered, or that it cannot trust it
 *   WaitEnds   a rank's context ends in Wait
 *   Close      a rank comes to Close; from here on its peers' votes are refused
 *   Flush      Close opens the rank's gates that are still shut
 *   Closed     Close returns with its plan closed
 *   Closing    Close returns and leaves its plan behind another's waiting copies
 *   CloseEnds  a rank's context ends in Close
 *   Finish     all ranks came, all chains passed, all kernels ended: memory is freed
 *   End        a rank's body ends; what it has not closed is closed by proxy
 *
 * The ranks run one program, in the same order: New of every plan, then rounds
 * of Start, Start, Wait, NextRound, Wait, NextRound, then Close of every plan in
 * either order. At any step all of them may turn to Close together, one of them
 * may stray to Close alone in an order of its own, or its body may end. Up to
 * FAULTS of the other mishaps above may happen in a run.
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
#define DEPTH    (PLANS*OWN)  /* a plan has one round at a time on a queue */
#define GENS     (PLANS*ROUNDS + FAULTS + RANKS + 1)
#define EVERYONE ((1<<RANKS)-1)

#define Bit(i)     (1<<(i))
#define First(r)   ((r)*OWN)
#define Owner(c)   ((c)/OWN)
#define Marks(c)   ((c) -> 1 : WRITERS)
#define From(q)    ((q)/(RANKS-1))
#define To(q)      ((q)%(RANKS-1) + ((q)%(RANKS-1) >= From(q)))
#define At(c,r)    ((c)*RANKS+(r))

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
	byte came;                  /* ranks that came to Close or ended */
	byte freed;                 /* ranks whose memory for the plan is freed */
	bool flushed;               /* gates were opened without their marks */
	/* what the properties speak of */
	byte written[CHUNKS];       /* parts written by their writers, over all rounds */
	byte landed[CHUNKS*RANKS];  /* the round whose bytes a rank holds */
	byte handed[RANKS];         /* rounds that a rank has handed back */
	byte early;                 /* chunks sent this round before they were written */
};
typedef Queue { byte length; byte slot[DEPTH] };

Plan plan[PLANS];
Queue queue[QUEUES];

/* The rendezvous: one is open at a time. A generation's verdict is kept for
 * the ranks that have yet to come to it. */
byte met, topic, meeting;
bool unsound;
mtype verdict[GENS];

byte ended;             /* ranks whose body has ended */
byte faults;            /* mishaps that may still happen */
bool extraDue;          /* an extra mark is to come ... */
byte extraAt = 255;     /* ... for this chunk of this plan */
bool crossed;           /* ranks may wait for each other in different calls */
byte leaveAt, furthest; /* where all ranks leave it; how far one has passed */
byte closeFirst = 255;  /* the plan that all close first */

/* What a rendezvous is about. */
#define NEW(p)  (1+(p))
#define NEXT(p) (1+PLANS+(p))
#define BARRIER (1+2*PLANS)

#define Require(rule, holds) \
	if :: (holds) :: else -> printf("violated: "); printf(rule); printf("\n"); assert(false) fi

inline Deadline() {
	Require("a deadline ends only calls that cross", crossed)
}

/* ---- quantifiers, unrolled by the preprocessor ---- */

#if RANKS == 2
#define EveryRank(f,x) (f(x,0) && f(x,1))
#define AnyQueue(f,p)  (f(p,0) || f(p,1))
#else
#define EveryRank(f,x) (f(x,0) && f(x,1) && f(x,2))
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

#define Round(p,c)  plan[p].round[Owner(c)]
#define Open(x)     (plan[PlanOf(x)].ready[ChunkOf(x)] >= Goal(RoundOf(x)))
#define Shut(p,c)   (plan[p].ready[c] < Goal(Round(p,c)))
#define Arrived(p,c,r) (plan[p].arrival[At(c,r)] >= Goal(Round(p,c)))
#define Extra(p,c)  (plan[p].writers[c] > Marks(c)*Goal(Round(p,c)))
#define Owed(p,c)   ((plan[p].launched & Bit(Owner(c))) && \
	plan[p].written[c] < Marks(c)*Round(p,c))
#define Busy(p,c)   (Owed(p,c) || (plan[p].opening & Bit(c)) || \
	(extraDue && extraAt == (p)*CHUNKS+(c)))
#define Idle(p,r)   !AnyOwn(Busy,p,r)
#define Queued(p,q) (plan[p].queued[q] > 0)
#define Blocked(p,q) (Queued(p,q) && PlanOf(queue[q].slot[0]) != (p) && \
	!Open(queue[q].slot[0]))
#define Sending(p,r) (plan[p].queued[(r)*(RANKS-1)] > 0 || \
	plan[p].queued[(r)*(RANKS-1)+RANKS-2] > 0)

/* To its owner a chunk is delivered when it is marked and has arrived at every
 * peer, to the others when it has arrived there. */
#define There(x,r)       (Owner((x)%CHUNKS) == (r) || Arrived((x)/CHUNKS,(x)%CHUNKS,r))
#define Everywhere(p,c)  (!Shut(p,c) && EveryRank(There,(p)*CHUNKS+(c)))
#define Delivered(p,r,c) (Owner(c) == (r) -> Everywhere(p,c) : Arrived(p,c,r))

/* ---- rules, and the mutations that drop them ---- */

#ifdef IGNORE_EXTRA /* Wait does not count marks */
#define ExtraMarks(p,r) false
#else
#define ExtraMarks(p,r) AnyOwn(Extra,p,r)
#endif

#ifdef IGNORE_FLUSH /* Wait trusts what a Close has let go */
#define Untrusted(p) false
#else
#define Untrusted(p) plan[p].flushed
#endif

#ifdef IGNORE_CLOSE /* a rank in Close does not fail its peers' votes */
#define Gone(p) ended
#else
#define Gone(p) (ended | plan[p].came)
#endif

#ifdef HOLD_CLOSE /* Close waits behind an earlier plan's copies */
#define Behind(p) false
#else
#define Behind(p) AnyQueue(Blocked,p)
#endif

#ifdef FREE_BUSY /* memory is freed under running kernels */
#define Unused(p) !AnyQueue(Queued,p)
#else
#define Unused(p) (!AnyQueue(Queued,p) && EveryRank(Idle,p))
#endif

/* ---- queues ---- */

/* Prepare puts rank r's chunks of plan p for round n on one of its queues. */
inline Prepare(p, q, n) {
	for (c : First(From(q)) .. First(From(q))+OWN-1) {
		Require("a queue never holds more than it has room for", queue[q].length < DEPTH);
		queue[q].slot[queue[q].length] = Chain(p, c, n);
		queue[q].length++;
		plan[p].queued[q]++;
	}
}

#define HandedBack(x,r) (plan[PlanOf(x)].handed[r] >= RoundOf(x)-1)
#define Written(x)      (plan[PlanOf(x)].written[ChunkOf(x)] >= Marks(ChunkOf(x))*RoundOf(x))

inline Send(q) {
	x = queue[q].slot[0]; p = PlanOf(x); c = ChunkOf(x);
	printf("queue %d>%d: Send plan %d chunk %d round %d\n", From(q), To(q), p, c, RoundOf(x));
	Require("memory is not freed before the last copy that uses it",
		!(plan[p].freed & (Bit(From(q)) | Bit(To(q)))));
	Require("no byte of a round lands before every rank handed the last one back",
		EveryRank(HandedBack, x));
	Require("no chunk is sent before its marks",
		Written(x) || plan[p].flushed || extraAt == p*CHUNKS+c);
	if :: Written(x) :: else -> plan[p].early = plan[p].early | Bit(c) fi;
	plan[p].landed[At(c, To(q))] = RoundOf(x);
	plan[p].arrival[At(c, To(q))]++;
	plan[p].queued[q]--;
	queue[q].length--;
	for (i : 0 .. DEPTH-2) { queue[q].slot[i] = queue[q].slot[i+1] }
	queue[q].slot[DEPTH-1] = 0;
	x = 0; p = 0; c = 0; i = 0;
}

proctype Engine(byte q) {
	byte x, p, c, i;
end:	do
	:: d_step { queue[q].length > 0 && Open(queue[q].slot[0]) -> Send(q) }
	od
}

/* ---- kernels ---- */

inline StoreReady(p, c) {
	Require("a kernel does not mark in memory that is freed", !(plan[p].freed & Bit(Owner(c))));
	Require("gates only grow", plan[p].ready[c] <= Goal(Round(p,c)));
	plan[p].ready[c] = Goal(Round(p,c));
}

inline Count(p, c) {
	Require("a kernel does not mark in memory that is freed", !(plan[p].freed & Bit(Owner(c))));
	plan[p].writers[c]++;
	if
	:: plan[p].writers[c] == Marks(c)*Goal(Round(p,c)) ->
#ifdef MARK_OPENS
		StoreReady(p, c)
#else
		plan[p].opening = plan[p].opening | Bit(c)
#endif
	:: else
	fi
}

proctype Kernel(byte p; byte c) {
end:	do
	:: d_step { Owed(p, c) ->
		printf("rank %d: Mark plan %d chunk %d\n", Owner(c), p, c);
		plan[p].written[c]++;
		Count(p, c) }
	:: d_step { extraDue && extraAt == p*CHUNKS+c ->
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

inline Decide(v) {
	Require("a generation has one verdict", !verdict[meeting]);
	verdict[meeting] = v;
	met = 0; topic = 0; meeting = 0; unsound = false
}

inline Refuse() {
	printf("rank %d: Refuse\n", r);
	Decide(REFUSED)
}

/* Ring runs on the last rank to arrive, with every queue locked. */
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
		plan[p].flushed = true;
		for (c : 0 .. CHUNKS-1) { plan[p].ready[c] = Goal(Round(p,c)) }
		if
		:: plan[p].round[0] == 1 -> plan[p].came = EVERYONE /* the world closes it */
		:: else
		fi;
		Decide(BROKEN)
	fi;
	k = 0; q = 0; i = 0; c = 0
}

inline Vote(p) {
	met = met | Bit(r);
#ifdef RING_EARLY /* a rank rings its own queues before the vote */
	for (q : r*(RANKS-1) .. r*(RANKS-1)+RANKS-2) { Prepare(p, q, plan[p].round[r]+1) }
	q = 0; c = 0;
#endif
	if
	:: met < EVERYONE
	:: met == EVERYONE && (unsound || topic == BARRIER) -> Refuse()
	:: met == EVERYONE && !(unsound || topic == BARRIER) -> Ring(p)
	fi
}

inline Arrive(p, what) {
	if
	:: verdict[gen] -> printf("rank %d: Arrive plan %d\n", r, p) /* too late */
	:: else ->
		k = what;
		if
		:: printf("rank %d: Arrive plan %d\n", r, p)
		:: faults > 0 -> faults--; printf("rank %d: Reject plan %d\n", r, p);
			unsound = true
		:: faults > 0 -> faults--; printf("rank %d: WrongCall plan %d\n", r, p);
			crossed = true; k = BARRIER
		fi;
		meeting = gen;
		if
		:: Gone(p) || (met && topic != k) -> Refuse()
		:: else -> topic = k; Vote(p)
		fi;
		k = 0
	fi
}

inline Take(p) {
	printf("rank %d: Take plan %d %e\n", r, p, got);
	Require("all ranks get the same verdict", got == verdict[gen]);
	gen++;
	Require("generations suffice", gen < GENS);
	if
	:: got == OK -> plan[p].state[r] = PREPARED
	:: got == BROKEN && plan[p].state[r] != NONE -> plan[p].state[r] = FAILED
	:: got == BROKEN && plan[p].state[r] == NONE -> plan[p].state[r] = CLOSING
	:: got == REFUSED ->
		Require("a refused round leaves no trace", !Sending(p,r));
		if
		:: plan[p].state[r] != NONE -> plan[p].handed[r]--
		:: else
		fi
	fi
}

/* AwaitVerdict leaves the verdict in got. */
inline AwaitVerdict(p) {
	if
	:: verdict[gen] -> got = verdict[gen]
	:: !verdict[gen] && faults > 0 -> faults--;
		printf("rank %d: Withdraw\n", r); Refuse(); got = REFUSED
	:: timeout -> Deadline();
		printf("rank %d: Withdraw\n", r); Refuse(); got = REFUSED; alone = true
#ifdef LATE_WITHDRAW /* a context withdraws a rank after the last one arrived */
	:: verdict[gen] == OK && faults > 0 -> faults--;
		printf("rank %d: Withdraw\n", r); got = REFUSED
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
	:: faults > 0 -> faults--; extraDue = true; extraAt = p*CHUNKS+First(r)
	fi
}

/* Trust checks what a rank may believe once Wait has told it that the round is
 * delivered. Only the owner can tell that a chunk was sent early by an extra
 * mark. */
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

inline Wait(p) {
	if
	:: ExtraMarks(p,r) || Untrusted(p) -> plan[p].state[r] = FAILED
	:: else -> Trust(p); plan[p].state[r] = DONE
	fi;
	printf("rank %d: Wait plan %d %e\n", r, p, plan[p].state[r])
}

inline WaitEnds(p) {
	printf("rank %d: WaitEnds plan %d\n", r, p);
	plan[p].state[r] = FAILED
}

inline AwaitRound(p) {
	if
	:: Idle(p,r) && (EveryChunk(Delivered,p,r) || ExtraMarks(p,r)) -> Wait(p)
	:: faults > 0 -> faults--; WaitEnds(p)
	:: timeout -> Deadline(); WaitEnds(p)
	fi
}

/* ---- closing ---- */

inline Leave(p) {
	plan[p].came = plan[p].came | Bit(r);
	plan[p].handed[r] = plan[p].round[r];
	if
	:: AnyOwn(Shut,p,r) -> plan[p].flushed = true /* before the gates open */
	:: else
	fi
}

inline OpenGates(p) {
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
	Leave(p);
#ifndef IGNORE_CLOSE
	if
	:: met && (topic == NEW(p) || topic == NEXT(p)) -> Refuse()
	:: else
	fi
#endif
}

inline Flush(p) {
	printf("rank %d: Flush plan %d\n", r, p);
#ifndef KEEP_SHUT /* Close leaves gates shut */
	OpenGates(p);
#endif
	plan[p].state[r] = CLOSING
}

inline AwaitClose(p) {
	if
	:: plan[p].freed & Bit(r) ->
		printf("rank %d: Closed plan %d\n", r, p); plan[p].state[r] = CLOSED
	:: Behind(p) ->
		printf("rank %d: Closing plan %d\n", r, p)
	:: faults > 0 -> faults--;
		printf("rank %d: CloseEnds plan %d\n", r, p)
	:: timeout -> Deadline();
		printf("rank %d: CloseEnds plan %d\n", r, p)
#ifdef FREE_EARLY /* a rank frees its memory when its own queues have drained */
	:: !Sending(p,r) && Idle(p,r) -> plan[p].freed = plan[p].freed | Bit(r);
		printf("rank %d: Closed plan %d\n", r, p); plan[p].state[r] = CLOSED
#endif
	fi
}

/* The body of a rank has ended: what it has not closed is closed by proxy. */
inline End() {
	printf("rank %d: End\n", r);
	ended = ended | Bit(r);
	if :: met -> Refuse() :: else fi;
	for (p : 0 .. PLANS-1) {
		if
		:: plan[p].round[r] > 0 && !(plan[p].came & Bit(r)) -> Leave(p);
#ifndef NO_PROXY /* nobody opens the gates of a rank that is gone */
			OpenGates(p)
#endif
		:: else
		fi
	}
	p = 0
}

inline Finish(p) {
	printf("world: Finish plan %d\n", p);
	plan[p].freed = EVERYONE
}

/* ---- the ranks' common program ---- */

/* Step s is What(s) of plan Which(s): New of each plan, then for each round
 * Start of each, then Wait and NextRound of one after the other. */
#define ROUND     (3*PLANS)
#define LAST      (PLANS+1 + ROUNDS*ROUND)
#define In(s)     (((s)-PLANS-1)%ROUND)
#define IsNew(s)  ((s) <= PLANS)
#define IsStart(s) (!IsNew(s) && (s) < LAST && In(s) < PLANS)
#define IsWait(s) (!IsNew(s) && (s) < LAST && In(s) >= PLANS && (In(s)-PLANS)%2 == 0)
#define IsNext(s) (!IsNew(s) && (s) < LAST && In(s) >= PLANS && (In(s)-PLANS)%2 == 1)
#define Which(s)  (IsNew(s) -> (s)-1 : (In(s) < PLANS -> In(s) : (In(s)-PLANS)/2))
#define Over(s)   ((s) > LAST-ROUND) /* no NextRound in the last round */

#define GoesOn    (leaveAt != step)
#define Turns     (leaveAt == step || (!leaveAt && step > furthest) || step == LAST)

inline Onward() {
	p = Which(step);
	if :: step > furthest -> furthest = step :: else fi
}

/* A rank that leaves alone may cross its peers: it waits in Close of one plan
 * for ranks that wait for it on another. */
inline LeaveAlone() {
	alone = true;
	if :: PLANS > 1 -> crossed = true :: else fi
}

inline ChooseOrder() {
	if
	:: alone || closeFirst == 255 -> select (first : 0 .. PLANS-1)
	:: else -> first = closeFirst
	fi;
	if :: !alone -> closeFirst = first :: else fi
}

inline Advance() {
	step++;
	got = 0;
	if :: IsNext(step) && Over(step) -> step++ :: else fi
}

#define Holds(p) (plan[p].state[r] != NONE && plan[p].state[r] < CLOSING)
#define Last     (PLANS-1-first)

proctype Rank(byte r) {
	byte step = 1, gen, p, q, c, i, k, first;
	bool alone; /* closes in an order of its own */
	mtype got;

	do
	:: atomic { IsNew(step) && GoesOn -> Onward(); Arrive(p, NEW(p)) };
		atomic { AwaitVerdict(p);
			if
			:: got == OK -> Advance()
			:: else -> goto leave
			fi }

	:: atomic { IsStart(step) && GoesOn -> Onward(); Start(p); Advance() }

	:: atomic { IsWait(step) && GoesOn -> Onward() };
		atomic { AwaitRound(p);
			if
			:: plan[p].state[r] == DONE -> Advance()
			:: else -> LeaveAlone(); goto leave
			fi }

	:: atomic { IsNext(step) && GoesOn -> Onward(); plan[p].handed[r]++;
#ifdef NO_BARRIER /* each rank goes on by itself */
		plan[p].round[r]++;
		for (q : r*(RANKS-1) .. r*(RANKS-1)+RANKS-2) { Prepare(p, q, plan[p].round[r]) }
		plan[p].launched = plan[p].launched & ~Bit(r);
		plan[p].state[r] = PREPARED; q = 0; c = 0; Advance() };
#else
		Arrive(p, NEXT(p)) };
		atomic { AwaitVerdict(p);
			if
			:: got == OK -> Advance()
			:: got == REFUSED && !Gone(p) && !alone -> got = 0 /* all try again */
			:: else -> goto leave
			fi }
#endif
	:: atomic { Turns -> leaveAt = step; goto leave }
	:: atomic { GoesOn && step < LAST -> LeaveAlone(); goto leave }
	:: break /* the body ends */
	od;
	goto over;

leave:	atomic { ChooseOrder(); step = 0; gen = 0; got = 0; p = 0 };
	do
	:: atomic { Holds(first) || Holds(Last) ->
			p = (Holds(first) -> first : Last); Close(p) };
		atomic { Flush(p) };
		atomic { AwaitClose(p) }
	:: break
	od;
over:	atomic { End(); step = 0; gen = 0; got = 0; first = 0; alone = false }
}

#define Exists(p)  (plan[p].round[0] + plan[p].round[1] > 0)
#define Ready(p)   (Exists(p) && plan[p].came == EVERYONE && plan[p].freed != EVERYONE && Unused(p))
#define Settled(p) (!Exists(p) || plan[p].freed == EVERYONE)

init {
	byte i, p;
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
	:: d_step { Ready(0) -> Finish(0) }
#if PLANS > 1
	:: d_step { Ready(1) -> Finish(1) }
#endif
	:: atomic { ended == EVERYONE && Settled(0) && Settled(PLANS-1) ->
		printf("world: Closed\n");
		for (i : 0 .. QUEUES-1) { Require("queues end empty", queue[i].length == 0) }
		break }
	od
}
