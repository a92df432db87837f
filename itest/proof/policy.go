package proof

import "fmt"

// Consumer is the consumer's name in the policies.
const Consumer = "counter"

const setupFile = "setup.sql"

// Policy is the policy of a member, which counts webhooks and writes each into
// the effect log.
type Policy struct {
	// Store and Source are how it is reached, as YAML on one line.
	Store, Source string
	// Strategy is "marker" unless set.
	Strategy string
	// More are further keys of the consumer, a line each.
	More []string
	// Identity is where a message's is; ID and Type are where the handler
	// finds the id and the type.
	Identity, ID, Type string
	// Batch is the most messages of a transaction, Timeout what a handler has.
	Batch   int
	Timeout fmt.Stringer
}

// Text is the policy as a file.
func (p Policy) Text() []byte {
	if p.Strategy == "" {
		p.Strategy = "marker"
	}
	more := ""
	for _, line := range p.More {
		more += "    " + line + "\n"
	}
	return fmt.Appendf(nil, policy, p.Store, p.Source, p.Strategy, p.Identity, p.Batch, p.Timeout, more, p.ID, p.Type)
}

const policy = `version: 1
stores:
  counts:
    %s
    migrate: true
    setup: ` + setupFile + `
sources:
  webhooks:
    %s
consumers:
  ` + Consumer + `:
    from: webhooks
    store: counts
    strategy: %s
    identity: %s
    batch: {max_size: %d}
    timeout: %s
%s    handler:
      sql:
        params:
          delivery: "%s"
          type: "%s"
          repository: "body:/repository/full_name?"
        statements:
          - insert into counters (type, repository, n) values (:type, coalesce(:repository, ''), 1)
            on conflict (type, repository) do update set n = counters.n + 1
          - insert into effects (delivery, type, repository) values (:delivery, :type, coalesce(:repository, ''))
`

// Setup makes the tables, on either database. The log has no unique key: an
// effect that happens twice stands in it twice.
const Setup = `create table counters (
    type text not null, repository text not null, n bigint not null,
    primary key (type, repository)
);
create table effects (
    delivery text not null, type text not null, repository text not null
);
`
