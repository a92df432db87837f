//go:build unix

package kafka

import (
	"context"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/worlds/webhooks"
)

// inboxKeys are the consumer's where members receive first. The lease is shorter
// than a freeze, which is shorter than what the server gives an idle transaction: so
// one that goes on after it meets its token and no closed connection.
var inboxKeys = []string{
	"ack: after_receipt", "alerts: {pending_age: 1m}", "inbox: {lease: 4s, poll: 200ms}",
	"retry: {max_attempts: 40, initial_delay: 100ms, max_delay: 2s}", "max_in_memory_wait: 1s",
}

// poisoned is how many messages are parked until somebody mends their cause.
const poisoned = 10

// failing has one handler in a hundred fail, on average twice, and some for good
// until the cause is mended. A sequence is not rolled back.
const failing = `create sequence luck;
create table mended (since timestamptz not null);
create function strike() returns trigger language plpgsql as $$
begin
  if new.delivery in (%s) and not exists (select 1 from mended) then
    raise exception 'poison';
  end if;
  if hashtext(new.delivery) %% 100 = 0 and nextval('luck') %% 3 <> 0 then
    raise exception using errcode = '55000', message = 'bad luck';
  end if;
  return new;
end $$;
create trigger strike before insert on effects for each row execute function strike();
`

func (r *run) setup() string {
	if !r.Inbox && !r.Order {
		return setup
	}
	var ids []string
	for _, event := range r.poison() {
		ids = append(ids, "'"+webhooks.ID(event)+"'")
	}
	counted := ""
	if r.Order { // the log has an order
		counted = "alter table effects add n bigint generated always as identity;\n"
	}
	return setup + counted + fmt.Sprintf(failing, strings.Join(ids, ", "))
}

// workOff waits until what waits in the inbox is held back by what is parked or by gaps, has what
// is parked retried by a command, and waits again.
func (r *run) workOff(ctx context.Context) error {
	if err := r.drained(ctx, untilMended); err != nil {
		return err
	}
	if _, err := r.Activity.DB.ExecContext(ctx, "insert into mended values (now())"); err != nil {
		return err
	}
	// What is behind a gap is parked, too, when it has waited for ten minutes: for its gap.
	said, err := r.Members[0].Semel(ctx, "parked", "retry", "--all", "--reason", string(semel.ReasonPermanent), "--yes", "--wait", "--because", "mended", "--as", "proof")
	if err != nil {
		return err
	}
	r.ledger.Retried = strings.Count(said, ": done")
	r.Say("%d parked messages are retried", r.ledger.Retried)
	if err := r.drained(ctx, untilFilled); err != nil {
		return err
	}
	return r.skipGaps(ctx)
}

// refusals are the writes that the server refused for their token.
func (r *run) refusals() int { return r.Server.Logged(" claims stand") }

// inboxLedger reads what the server says of tokens and of failures.
func (r *run) inboxLedger() {
	if r.Inbox || r.Order {
		r.ledger.Refused = r.refusals()
		r.ledger.Failed = r.Server.Logged("bad luck")
	}
}
