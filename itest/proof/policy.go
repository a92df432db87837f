package proof

import (
	"cmp"
	"fmt"
)

// Consumer is the name of the consumer in the policies.
const Consumer = "counter"

const setupFile = "setup.sql"

// Policy is the policy of a member. The member counts webhooks, and writes each webhook into the effect log.
type Policy struct {
	// Name is the name of the consumer; "" means the constant Consumer. The effects and counters of a consumer with
	// another name begin with this name and a slash.
	Name string
	// Listen is the address of the metrics; "" means none.
	Listen string
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

// Text returns the policy as the text of a file, with further consumers of the same source.
func (p Policy) Text(further ...Policy) string {
	text := "version: 1\n"
	if p.Listen != "" {
		text += fmt.Sprintf("listen: %q\n", p.Listen)
	}
	text += fmt.Sprintf(policyHead, p.Store, p.Source)
	for _, c := range append([]Policy{p}, further...) {
		text += c.consumer()
	}
	return text
}

func (p Policy) consumer() string {
	prefix := ""
	if p.Name != "" {
		prefix = "'" + p.Name + "/' || "
	}
	more := ""
	for _, line := range p.More {
		more += "    " + line + "\n"
	}
	return fmt.Sprintf(policyConsumer, cmp.Or(p.Name, Consumer), cmp.Or(p.Strategy, "marker"), p.Identity, p.Batch, p.Timeout, more, p.ID, p.Type, prefix)
}

// InboxKeys returns the policy keys of a consumer that stores messages before it processes them. The lease is shorter
// than a freeze, and a freeze is shorter than the server's timeout for idle transactions. After a freeze, the server
// therefore rejects the member's write because the claim token is old, and not because the connection was closed.
func InboxKeys() []string {
	return []string{
		"ack: after_receipt", "alerts: {pending_age: 1m}", "inbox: {lease: 4s, poll: 200ms}",
		"retry: {max_attempts: 40, initial_delay: 100ms, max_delay: 2s}", "max_in_memory_wait: 1s",
	}
}

const policyHead = `stores:
  counts:
    %s
    migrate: true
    setup: ` + setupFile + `
sources:
  webhooks:
    %s
consumers:
`

const policyConsumer = `  %s:
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
          - insert into counters (type, repository, n) values (%[9]s:type, coalesce(:repository, ''), 1)
            on conflict (type, repository) do update set n = counters.n + 1
          - insert into effects (delivery, type, repository) values (%[9]s:delivery, %[9]s:type, coalesce(:repository, ''))
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
