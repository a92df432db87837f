//go:build unix

package upgrade

import (
	"cmp"
	"fmt"
)

// policy is the policy of both releases. The faults of Plant change the policy. The effect log has no unique key, so
// only Semel prevents a second effect.
const policy = `version: 1
stores:
  counts:
    %s
sources:
  feed:
    %s
consumers:
  counter:
    from: feed
    store: counts
    strategy: marker
    identity: {id: "header:id", source: "const:%s"}
    fingerprint: %s
    batch: {max_size: %d}
    handler:
      sql:
        params: {id: "header:id", release: "const:${RELEASE}", amount: "body:/amount"}
        statements:
          - sql: insert into effects (id, release) select :id, :release where cast(:amount as bigint) > 0 or exists (select 1 from gate)
            rows: 1
`

// Values that a release uses if Plant is empty.
const (
	prefix      = "semel_"
	scope       = "shop"
	fingerprint = "body"
)

// Tables that the test creates before any release runs: the effect log, and a table "gate". While the gate is
// empty, some messages are parked.
const (
	effectLog = `create table effects (id text not null, release text not null)`
	gateTable = `create table gate (open integer not null)`
)

// text returns the policy of a release for a reader. If follow is true, the run does not end by itself, and its batches
// are small, so that a kill always interrupts work.
func (r Release) text(p *Proof, reader string, follow bool) []byte {
	batch := 500
	if follow {
		batch = 5
	}
	return fmt.Appendf(nil, policy, p.Store.Policy(cmp.Or(r.Plant.Prefix, prefix)), p.Source.Policy(reader, follow),
		scope, cmp.Or(r.Plant.Fingerprint, fingerprint), batch)
}
