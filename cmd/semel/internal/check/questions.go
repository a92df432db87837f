package check

import "github.com/semel-go/semel/internal/handlertest"

// Question is a question of the design review.
type Question struct {
	// Number never changes. The number of a removed question is not reused.
	Number int
	// Asks is the question in one line. Explain says why the question matters and when it fails.
	Asks, Explain string
	judge         func(*Subject) Answer
}

// Answer answers the question for a consumer.
func (q Question) Answer(s *Subject) Answer { return q.judge(s) }

// Questions returns all questions, ordered by number.
func Questions() []Question {
	return append(design(), operation()...)
}

func design() []Question {
	return []Question{
		{1, "what is the id of a message?", "Deliveries with the same id are copies of one message. The id must come from the producer. Fails if markers are kept and the policy names no id, and if the id of a webhook is an unsigned header, unless the effect may happen twice.", (*Subject).checkID},
		{2, "is the id stable over retries and replays?", "If a retry, the broker or the consumer creates a new id, every copy takes effect. The policy refuses coordinates of the broker. Fails if the store has recorded another identity that is neither named as previous nor retired.", (*Subject).checkIDStability},
		{3, "is deduplication scoped by consumer?", "A marker belongs to one consumer, and a renamed consumer has no markers. Fails if the store does not know the consumer but knows one with the same identity that the policy lacks, and if other handlers own the name.", (*Subject).checkScope},
		{4, "is duplicate delivery tested?", "Without such a test, the first duplicate is delivered in production. Cannot be known before semel check --prove has tested the handler, and again after a change of the policy. Fails if a subtest failed.", newTestCheck("duplicate delivery", handlertest.Duplicates, handlertest.Redelivery)},
		{5, "what is the business effect?", "The kind of effect decides which strategy is enough, how long markers must be kept, and what a replay may do. Fails if the policy does not declare it.", (*Subject).checkEffect},
		{6, "is the effect idempotent by nature?", "An effect that sets or replaces may happen twice; one that adds, orders or pays needs a guard. Fails if the strategy is natural and the kind of effect is not declared.", (*Subject).checkIdempotency},
		{7, "is the marker written with the effect?", "If the marker is written first, a crash loses messages; if the effect is first, a crash doubles them. Only one commit of both avoids this. Fails if tables or the constraint of a business key are missing or damaged; with --deep also if a row contradicts its marker or stream, or an intent exists whose message has not taken effect.", (*Subject).checkAtomicity},
		{8, "are effects outside deduplicated?", "A call is not part of a transaction. It needs a key that the other side remembers, or an intent that is written first. Fails if calls have no key.", (*Subject).checkOutsideEffects},
		{9, "is the provider's key stable?", "The key must be the same for every attempt and process. Semel derives it from the identity and the step. Fails if no key is sent.", (*Subject).checkKey},
		{10, "is replay allowed?", "A replay repeats effects whose markers are gone, and effects in other systems. Fails if a replay with real effects elsewhere is allowed, and if it is allowed for an undeclared effect.", (*Subject).checkReplay},
		{11, "does a replay of dead letters keep the id?", "A dead letter that returns with a new id is a new message. Semel replays rows under their identity, and topics with key, headers and body of the record, so this never fails; the answer names which applies.", (*Subject).checkDeadLetters},
		{12, "how long are ids kept?", "Copies that arrive later are not recognised. Fails if running processes have recorded another retention than the policy has, and if the reaper is off although markers should be removed.", (*Subject).checkRetention},
		{13, "is that at least as late as a copy can arrive?", "The broker's retention, the retries and the delay before the broker determine how late a copy can arrive. Fails if a copy can arrive later than markers are kept.", (*Subject).checkHorizon},
		{14, "are old and future versions handled?", "Messages of one aggregate can arrive out of order, and an old state must not overwrite a newer one. Fails if the effect sets a state and no version is checked.", (*Subject).checkVersions},
		{15, "are states of the inbox watched?", "Parked messages have no effect until an operator decides. Fails if a message has been parked for more than a day, if the oldest message has waited longer than pending_age, if pending_age is missing although messages are acked on receipt, and if alerts are set but the policy has no listen to serve their metrics.", (*Subject).checkInbox},
		{16, "are stale claims recovered?", "A message must not stay with a dead process. Leases end by the store's clock, and any running process claims due rows. Fails if leases have ended and no process claims the rows.", (*Subject).checkStaleClaims},
		{17, "is a duplicate acked?", "A duplicate that is treated as an error is delivered again and again. Semel always acks it.", (*Subject).checkDuplicateAck},
		{18, "are crash windows tested?", "A process can die between effect and marker, and between commit and ack. Cannot be known before semel check --prove has tested the handler, and again after a change of the policy. Fails if a subtest failed.", newTestCheck("crashes", handlertest.BeforeCommit, handlertest.AfterCommit)},
	}
}

func operation() []Question {
	return []Question{
		{19, "is other content under a known id noticed?", "Without a fingerprint, other content under the same id is treated as a copy and lost. Fails if markers are kept without fingerprints.", (*Subject).checkFingerprint},
		{20, "does a key outlive the last attempt?", "An attempt after the other side has forgotten the key could happen twice; Semel does not make it. Fails if a wait between attempts can be longer than the window.", (*Subject).checkExpiry},
		{21, "which keys are used downstream, and which risks are left?", "Accepted risks must be known to the systems that are called. Fails if calls with an unknown outcome wait for a decision; lists the risks that the policy accepts.", (*Subject).checkRisks},
		{22, "are offsets committed after effects?", "Semel always acks after the commit. But a person, another program, or a restore of the database can leave a group ahead of the store. Fails if a group is ahead of its store.", (*Subject).checkOffsets},
		{23, "are only committed records read?", "Records of aborted transactions must not be processed. Fails with read_uncommitted.", (*Subject).checkIsolation},
		{24, "is it reconciled?", "Only a comparison of sent with applied messages finds unexpected losses. Cannot be known, because a comparison leaves no record.", (*Subject).checkReconciliation},
		{25, "were duplicates ever seen?", "A guard that never met a duplicate is untested. Passes if a copy was counted on one of the latest rows. Markers and keys do not count copies; the summary of semel run and the metric semel_duplicates_total do.", (*Subject).checkDuplicatesSeen},
		{26, "does the longest handler end within its lease?", "A handler that outlives its lease can run beside a second one. Fails if the policy allows handlers longer than the lease, and if messages were parked because their processes died.", (*Subject).checkLease},
	}
}
