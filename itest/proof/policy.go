package proof

import "fmt"

// Consumer is the name of the consumer in the policies.
const Consumer = "counter"

const setupFile = "setup.sql"

// Policy is the policy of a member. The member counts webhooks, and writes each webhook into the effect log.
type Policy struct {
	// Store and Source are the configurations of the store and of the source, as YAML on one line.
	Store, Source string
	// Strategy is the strategy of the consumer; "" means "marker".
	Strategy string
	// More are further policy keys of the consumer, one on each line.
	More []string
	// Identity is the selector of a message's identity. ID and Type select the values that the handler
	// writes.
	Identity, ID, Type string
	// Batch is the maximum number of messages in a transaction. Timeout is the handler's timeout.
	Batch   int
	Timeout fmt.Stringer
}

// Text returns the policy as the text of a file.
func (p Policy) Text() string {
	if p.Strategy == "" {
		p.Strategy = "marker"
	}
	more := ""
	for _, line := range p.More {
		more += "    " + line + "\n"
	}
	return fmt.Sprintf(policy, p.Store, p.Source, p.Strategy, p.Identity, p.Batch, p.Timeout, more, p.ID, p.Type)
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

// Setup creates the tables, in PostgreSQL and in SQLite. The effect log has no unique key, so an effect that
// happens twice has two rows.
const Setup = `create table counters (
    type text not null, repository text not null, n bigint not null,
    primary key (type, repository)
);
create table effects (
    delivery text not null, type text not null, repository text not null
);
`
