package policy

// previous reports settings that cannot be combined with identity.previous.
func (r rules) previous() {
	c := r.consumer
	f := c.Identity.Previous
	if f == nil || !r.ok("identity", "strategy", "fingerprint", "version", "dedup", "retention") {
		return
	}
	const key, remove = "identity.previous", "remove it"
	switch {
	case !c.Strategy.Marks():
		r.refuse(key, "this strategy writes no marker, so that nothing is marked under another identity", remove)
	case selected(f.ID, f.Source).Derivation() == selected(c.Identity.ID, c.Identity.Source).Derivation():
		r.refuse(key, "it is what the identity is now", "write what it was before, or remove it")
	case c.Fingerprint.None:
		r.refuse(key, "without a fingerprint several messages that had one former identity cannot be told from copies, and all but one would be lost", "write fingerprint: body")
	case c.Version != nil:
		r.refuse(key, "the streams of another identity begin anew, and their versions would be judged twice", "remove it, or version; a consumer of another name can begin where this one has ended")
	case c.Retention.DailyPartitions:
		r.refuse(key, "markers by day have the ids of one identity", "remove it, or retention.daily_partitions")
	case r.set("dedup"):
		r.refuse(key, "a table that was adopted keeps the ids of one identity", "remove it, or dedup; semel migrate seed takes over the ids of such a table")
	}
	if reason, remedy := split(selected(f.ID, f.Source).Validate(), "write what identity.id was before"); reason != "" {
		r.refuse(key, reason, remedy)
	}
}

// exclusive needs what tells one service from another.
func (r rules) exclusive() {
	if r.consumer.Exclusive && r.ok("handler") && r.consumer.owner() == "" {
		r.refuse("exclusive", "the handler is one for all messages, and nothing of it tells this service from another", "write handler: {types: …}, or remove it")
	}
}
