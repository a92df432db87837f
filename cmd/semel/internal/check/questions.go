package check

// Question is one of the design review.
type Question struct {
	// Number never changes, and that of one which is given up is not used again.
	Number int
	// Asks is the question, in a line; Explain says why it is asked and what the answers
	// mean.
	Asks, Explain string
	judge         func(*Subject) Answer
}

// Answer answers the question about a consumer.
func (q Question) Answer(s *Subject) Answer { return q.judge(s) }

// Questions are all, by number.
func Questions() []Question {
	return append(design(), operation()...)
}

func design() []Question {
	return []Question{
		{1, "what is the id of a message?", "Two deliveries are copies of one message when they have one id. It must come from the producer. Fails where a marker is kept and the policy names no id, and where the id of a webhook is a header that nobody signed, unless the effect is of a kind that can be made twice.", (*Subject).id},
		{2, "is the id stable over retries and replays?", "An id that another try, the broker or the consumer makes anew has each copy take effect. The policy refuses coordinates of the broker. Fails where the store has been told another way of finding ids that is neither named as previous nor retired.", (*Subject).stable},
		{3, "is deduplication scoped by consumer?", "A marker of one consumer must not stand for another's effect, and a consumer that is renamed forgets all that it has done. Fails where the store does not know the consumer, and knows one that the policy lacks and that found its ids in the same way; and where other handlers own the name.", (*Subject).scoped},
		{4, "is duplicate delivery tested?", "What was never delivered twice in a test is delivered twice in production first. Nobody can know before a test kit has written its result into the store.", untested("duplicate delivery")},
		{5, "what is the business effect?", "Which strategy is enough, how long ids must be kept and what a replay may do follow from the kind of effect. Fails where the policy does not declare it.", (*Subject).effect},
		{6, "is the effect idempotent by nature?", "An effect that sets or replaces can be made twice; one that adds, orders or pays cannot, and needs a guard. Fails where the strategy rests on nature and the kind of effect is not declared.", (*Subject).natural},
		{7, "is the marker written with the effect?", "Marker first loses messages in a crash, effect first doubles them; only one commit of both does neither. Fails where the tables are missing or do not protect, and where the constraint of a business key is not there; with --deep also where a row and its marker or its stream say different things, or an intent stands whose message has not taken effect.", (*Subject).together},
		{8, "are effects outside deduplicated?", "A call is in no transaction. It must be made under a key that the other side keeps, or be written down as an intent first. Fails where calls carry no key.", (*Subject).deduplicated},
		{9, "is the provider's key stable?", "A key that is another for each try, or for each process, is no key. Semel makes it of the identity and the step. Fails where none is sent.", (*Subject).key},
		{10, "is replay allowed?", "A replay makes effects again that the store does not know any more, and those outside. Fails where it is allowed with real effects outside, and where it is allowed for an effect that is not declared.", (*Subject).replay},
		{11, "does a replay of dead letters keep the id?", "A letter that comes back under a new id is a new message. Semel replays from the row, under its identity, and from topics with key, headers and body of the record, so that this never fails; the answer says which it is.", (*Subject).letters},
		{12, "how long are ids kept?", "Copies that come later than that are not recognised. Fails where running processes have recorded another retention than the policy says, and where the reaper is switched off though ids are to be removed.", (*Subject).kept},
		{13, "is that at least as late as a copy can come?", "The broker's retention, the retries and what lies before the broker together say how late a copy can come. Fails where that is longer than ids are kept.", (*Subject).horizon},
		{14, "are old and future versions handled?", "Messages of one aggregate can come out of order: an old state must not overwrite a newer one. Fails where the effect sets a state and nothing judges versions.", (*Subject).versions},
		{15, "are states of the inbox watched?", "What was set aside has no effect until somebody acts. Fails where something has been parked for more than a day, where the oldest message has waited longer than pending_age, where no pending_age is set though the broker is settled first, and where alerts are set and the policy has no listen, so that nothing serves their metrics.", (*Subject).watched},
		{16, "are stale claims recovered?", "Who dies with a claim must not keep the message for ever. Leases end by the store's clock, and whoever runs the consumer takes what is due. Fails where leases have ended and nobody takes the rows.", (*Subject).recovered},
		{17, "is a duplicate settled?", "A duplicate that is treated as an error comes again and again. Semel settles it as a success, always.", (*Subject).settled},
		{18, "are crash windows tested?", "Between effect and marker, and between commit and settling, a process can die. Nobody can know before a test kit has written its result into the store.", untested("dying in each crash window")},
	}
}

func operation() []Question {
	return []Question{
		{19, "is other content under a known id noticed?", "Without a fingerprint a second content under one id is taken for a copy, and lost. Fails where a marker is kept without one.", (*Subject).fingerprint},
		{20, "does a key outlive the last try?", "A try after the other side has forgotten the key is made twice, or, as Semel does it, not at all. Fails where a wait between tries can be longer than the window.", (*Subject).expiry},
		{21, "which keys are used downstream, and which risks are left?", "Risks that somebody took upon himself have to be known to who is called. Fails where calls of unknown outcome wait to be resolved; names what the policy has taken upon itself.", (*Subject).risks},
		{22, "are offsets settled after effects?", "Semel settles after the commit, always. But a person, another program, or a restore of the database can leave a group ahead of the store. Fails where it is.", (*Subject).offsets},
		{23, "is only read what was committed?", "Records of a transaction that was aborted never happened. Fails with read_uncommitted.", (*Subject).committed},
		{24, "is it reconciled?", "Only a comparison of what was sent with what was applied finds what nobody counted. Nobody can know, since a comparison writes nothing down.", (*Subject).reconciled},
		{25, "were duplicates ever seen?", "A guard that was never asked is not tried. Passes where a copy was counted on one of the latest rows. Markers and keys count none: the summary of semel run and the metric semel_duplicates_total do.", (*Subject).exercised},
		{26, "does the longest handler end within its lease?", "A handler that outlives its lease runs beside the next one. Fails where the policy lets a handler run longer than the lease, and where messages were parked since processes never came to their end.", (*Subject).lease},
	}
}
