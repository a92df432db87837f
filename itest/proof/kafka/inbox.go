//go:build unix

package kafka

import (
	"context"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/worlds/webhooks"
)

// inboxKeys are the policy keys of the consumer that stores messages before it processes them. The lease is
// shorter than a freeze, and a freeze is shorter than the server's timeout for idle transactions. After a
// freeze the member's write is therefore rejected because of its token, and not because its connection was
// closed.
var inboxKeys = []string{
	"ack: after_receipt", "alerts: {pending_age: 1m}", "inbox: {lease: 4s, poll: 200ms}",
	"retry: {max_attempts: 40, initial_delay: 100ms, max_delay: 2s}", "max_in_memory_wait: 1s",
}

// poisoned is the number of messages that fail permanently until the proof repairs their cause.
const poisoned = 10

// failing makes one handler in a hundred fail, on average twice. Some handlers fail permanently until the
// cause is repaired. The failures are counted with a sequence, because a rollback does not reset a sequence.
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
	if r.Order { // the column n records the order of the effects
		counted = "alter table effects add n bigint generated always as identity;\n"
	}
	return setup + counted + fmt.Sprintf(failing, strings.Join(ids, ", "))
}

// workOff waits until the only waiting messages in the inbox are parked messages, and messages behind a
// parked message or a gap. workOff then retries the parked messages with a command, and waits again.
func (r *run) workOff(ctx context.Context) error {
	if err := r.drained(ctx, untilMended); err != nil {
		return err
	}
	if _, err := r.Activity.DB.ExecContext(ctx, "insert into mended values (now())"); err != nil {
		return err
	}
	// After ten minutes, a message behind a gap is parked too, with reason gap.
	said, err := r.Members[0].Semel(ctx, "messages", "retry", "--all", "--reason", string(semel.ReasonPermanent), "--yes", "--wait", "--because", "mended", "--as", "proof")
	if err != nil {
		return err
	}
	_, results, _ := strings.Cut(said, "happened: ")
	if _, err := fmt.Sscanf(results, "%d applied", &r.ledger.Retried); err != nil {
		return fmt.Errorf("semel messages retry says %q: %w", said, err)
	}
	r.Say("%d parked messages are retried", r.ledger.Retried)
	if err := r.drained(ctx, untilFilled); err != nil {
		return err
	}
	return r.skipGaps(ctx)
}

// refusals returns the number of writes that the server rejected because of their token.
func (r *run) refusals() int { return r.Server.Logged(" claims stand") }

// inboxLedger counts rejected tokens and failures in the server's log.
func (r *run) inboxLedger() {
	if r.Inbox || r.Order {
		r.ledger.Refused = r.refusals()
		r.ledger.Failed = r.Server.Logged("bad luck")
	}
}
