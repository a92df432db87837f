//go:build unix

package kafka

import (
	"context"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/webhooks"
)

// inboxKeys are the keys of the consumer that receives first. The lease is shorter than a
// freeze, and a freeze is shorter than the server's timeout for idle transactions. So a member
// that continues after a freeze fails because of its token and not because of a closed
// connection.
var inboxKeys = []string{
	"ack: after_receipt", "alerts: {pending_age: 1m}", "inbox: {lease: 4s, poll: 200ms}",
	"retry: {max_attempts: 40, initial_delay: 100ms, max_delay: 2s}", "max_in_memory_wait: 1s",
}

// poisoned is the number of messages that are parked until their cause is repaired.
const poisoned = 10

// failing makes one handler in a hundred fail, on average twice, and some permanently until the
// cause is repaired. failing counts with a sequence, because a sequence is not rolled back.
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

// workOff waits until all waiting messages in the inbox are held back by parked messages or
// gaps. Then it retries the parked messages with a command, and waits again.
func (r *run) workOff(ctx context.Context) {
	r.drained(ctx, untilMended)
	r.Exec(ctx, "insert into mended values (now())")
	// A message behind a gap is parked too, as a gap, after ten minutes.
	said := proof.Must(r.Members[0].Semel(ctx, "messages", "retry", "--all", "--reason", string(semel.ReasonPermanent), "--yes", "--wait", "--because", "mended", "--as", "proof"))
	_, results, _ := strings.Cut(said, "happened: ")
	proof.During("semel messages retry says "+said, func() { proof.Must(fmt.Sscanf(results, "%d applied", &r.ledger.Retried)) })
	r.Say("%d parked messages are retried", r.ledger.Retried)
	r.drained(ctx, untilFilled)
	r.skipGaps(ctx)
}

// refusals finds the writes that the server rejected because of their token.
func (r *run) refusals() int { return r.Server.Logged(" claims stand") }

// inboxLedger counts rejected tokens and failures in the server's log.
func (r *run) inboxLedger() {
	if r.Inbox || r.Order {
		r.ledger.Refused = r.refusals()
		r.ledger.Failed = r.Server.Logged("bad luck")
	}
}
