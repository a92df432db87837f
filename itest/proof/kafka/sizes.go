//go:build unix

package kafka

import "time"

// Full returns the configuration of the full size, which publishes for six minutes.
func Full() Proof {
	return Proof{Events: 200_000, Duplicates: 20_000, Publish: 6 * time.Minute, Partitions: 6, Brokers: 1, AtFirst: 3, Batch: 100, Session: 6 * time.Second,
		Kills: 21, Freezes: 3, ForGood: true, BrokerRestarts: 3, DatabaseRestarts: 3, Changes: 2, Redelivered: 2_000}
}

// Quick reduces the sizes in p so that the fault test takes about a minute. Quick does not change other settings of p.
func Quick(p Proof) Proof {
	p.Events, p.Duplicates, p.Publish = 20_000, 2_000, 40*time.Second
	p.Kills, p.Freezes, p.ForGood, p.BrokerRestarts, p.DatabaseRestarts, p.Changes, p.Redelivered = 6, 1, true, 1, 1, 1, 1
	return p
}

// Three returns the configuration of a fault test with three brokers under load, which takes about four minutes. The
// test kills the group's coordinator three times and freezes the coordinator three times; with quick, only once.
func Three(p Proof, quick bool) Proof {
	p.Brokers, p.Events, p.Duplicates, p.Publish = 3, 90_000, 9_000, 3*time.Minute
	p.Kills, p.Freezes, p.ForGood, p.BrokerRestarts, p.BrokerFreezes, p.DatabaseRestarts, p.Changes, p.Redelivered = 4, 1, false, 3, 3, 1, 1, 1
	if quick {
		p.Events, p.Duplicates, p.Publish, p.BrokerRestarts, p.BrokerFreezes = 20_000, 2_000, time.Minute, 1, 1
	}
	return p
}

// Inbox returns the configuration of a fault test of the inbox, with eight members, about forty kills, and twenty
// freezes that are longer than the lease. With quick, this test takes a minute.
func Inbox(p Proof, quick bool) Proof {
	p.Inbox, p.AtFirst, p.Events, p.Duplicates, p.Publish = true, 8, 100_000, 10_000, 8*time.Minute
	p.Kills, p.Freezes, p.ForGood, p.BrokerRestarts, p.DatabaseRestarts, p.Changes, p.Redelivered, p.Refused = 41, 19, true, 0, 3, 0, 1, 10
	if quick {
		p.AtFirst, p.Events, p.Duplicates, p.Publish = 3, 10_000, 1_000, 50*time.Second
		p.Kills, p.Freezes, p.ForGood, p.DatabaseRestarts, p.Refused = 5, 2, false, 1, 1
	}
	return p
}

// Order returns the configuration of a fault test of message order, with versions of a thousand streams, four members,
// about thirty kills and ten freezes. With quick, this test takes a minute.
func Order(p Proof, quick bool) Proof {
	p.Order, p.AtFirst, p.Events, p.Duplicates, p.Publish = true, 4, 100_000, 10_000, 6*time.Minute
	p.Kills, p.Freezes, p.ForGood, p.BrokerRestarts, p.DatabaseRestarts, p.Changes, p.Redelivered = 31, 10, false, 0, 1, 2, 1
	if quick {
		p.AtFirst, p.Events, p.Duplicates, p.Publish = 3, 10_000, 1_000, 45*time.Second
		p.Kills, p.Freezes, p.DatabaseRestarts, p.Changes = 4, 1, 1, 1
	}
	return p
}
