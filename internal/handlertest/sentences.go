package handlertest

// Texts for the faults that subtests find: what happened, and how to fix the fault. Most texts begin with the name of a
// message.
const (
	saysRemains = "%s was rolled back and its effect is still there: the handler writes outside its transaction; " + writeInTx
	saysNotInTx = "%s: the handler returned nil and its effect exists, although its transaction had ended: the effect is elsewhere; " +
		writeInTx
	writeInTx  = "write through tx; for mails, files and messages write intents (consumer.NewIntents); make calls with consumer.NewCalling"
	saysMemory = "each message was rolled back once and ran again, and the effect differs: " +
		"the handler keeps state in memory between runs, or Effect shows numbers of a sequence; keep state in the store, " +
		"and leave such numbers out"
	saysAttempt = "messages that ran for the first time at their second attempt have another effect: " +
		"the handler depends on m.Attempt; do not use it for what you write"
	saysSwallowed = "%s: the handler returned nil although every use of its transaction failed; " +
		"return the errors of the transaction"
	saysStatement = "%s: the handler returned nil although a statement failed; return the errors of the transaction: %w"
	saysEnded     = "%s: the handler used a transaction that had ended, perhaps that of an earlier message; " +
		"use only the tx of the call, and only until you return: %w"
	saysGoroutine = "the handler returned while its goroutine %s was running, which may use the transaction after it has ended; " +
		"wait for it before you return"
	saysChanged    = "the handler changed its message, and a retry gets the changed one; copy the body before you change it"
	saysEndedBy    = "the handler committed or rolled back the transaction itself; return nil to commit, an error to roll back"
	saysUnusable   = "%w; give messages that the handler can process"
	saysNoEffect   = "no message changed what Effect returns; let Effect read what the handler writes, and give messages that it processes"
	saysRandomCall = "two undisturbed runs sent different idempotency keys or bodies to the provider, so a retry is charged again; " +
		"use m.IdempotencyKey for the key, and only values of the message for the body"
	saysRandom = "two undisturbed runs from an empty state have different effects: the handler uses random values, the time, " +
		"a sequence, or variables that outlive it; derive ids with m.OutputID and times from the message, or leave them out of Effect"
	saysTurns = "all messages were delivered together, so that the first steps of all ran before the second steps, and the effect differs: " +
		"a step reads what the steps of other messages change in the meantime; read only what earlier steps wrote for the same message"
	saysTwice  = "%s, and the effect differs; %s"
	saysPoison = "%s failed for good in a batch with the other messages, and the effects are not those of the other messages alone; " +
		"write through tx only, and keep no state in memory"
	saysConflict = "after each message another content with the same id was delivered, and the effect differs; " +
		"check Config.Fingerprint and Config.Identity"
	saysOrder = "messages with different keys were delivered in another order, and the effect differs; brokers keep the order of " +
		"a key only: sort what Effect returns, or set Config.Version, or give messages that depend on each other one key"
	saysOld     = "each version was delivered again under another id, and the effect differs; check Config.Version"
	saysFuture  = "the versions were delivered in reverse, and the effect differs after all were applied; check Config.Version"
	saysExpired = "%s is older than the markers that are kept, and it took effect; check Config.Retention"
	saysKeyless = "the handler called the provider without an Idempotency-Key (body %.60q), so a retry is charged again; " +
		"send m.IdempotencyKey in that header"
	saysProvider = "the provider failed once for each message (%s), and the effect differs; " +
		"return the errors of calls, also of statuses other than 2xx, and send the same key with each attempt"
	saysReplayed = "%s belongs to a replay without effects, and the handler charged: call m.Replay, and make no charge if Effects of its " +
		"result is false"
	saysForgotten = "the provider had forgotten the keys before each retry, and the effect differs; " +
		"look for the charge before you charge, or set consumer.Provider.Window with consumer.NewCalling"
	saysKilled = "%s: its process was killed %s, and the effect is not the one that was committed: " +
		"write through tx, and let Effect show nothing that ends with the process%s"
	saysElsewhere = "the child process changed nothing in the database of this process: let start open the database that " +
		"semeltest.Process returns, and keep its tables if they exist"
	saysAlive = "the child process was not killed, because it ended earlier (%v); start runs a second time there, on the " +
		"database as it is:\n%s"
	saysCharged = "the provider was charged otherwise than in an undisturbed run: "
)
