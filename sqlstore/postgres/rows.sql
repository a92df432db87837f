-- name: inbox
{prefix}inbox;

-- name: row
insert into {prefix}inbox as i (revision, scope, id, long_id, conflict, version, sum, surrogate, state, reason,
  topic, partition, "offset", broker_id, key, type, schema, envelope, payload,
  received_at, changed_at, started, finished, repeated, first_error, last_error, due_at, stream, stream_version, cause, consumer)
values (1, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
  date_trunc('milliseconds', clock_timestamp()), date_trunc('milliseconds', clock_timestamp()), $19, $20, 0, $21, $22,
  date_trunc('milliseconds', clock_timestamp()) + $23::bigint * interval '1 millisecond', $24, $25, $26,
  coalesce((select s.consumer from {prefix}scopes s where s.number = $1), ''))
on conflict (scope, id, conflict) do update
set revision = i.revision + 1, token = null, locked_until = null,
  version = excluded.version, sum = excluded.sum, surrogate = excluded.surrogate, state = excluded.state, reason = excluded.reason, topic = excluded.topic, partition = excluded.partition,
  "offset" = excluded."offset", broker_id = excluded.broker_id, key = excluded.key, type = excluded.type, schema = excluded.schema, envelope = excluded.envelope, payload = excluded.payload,
  received_at = excluded.received_at, changed_at = excluded.changed_at, started = excluded.started, finished = excluded.finished, first_error = excluded.first_error, last_error = excluded.last_error, due_at = excluded.due_at,
  stream = excluded.stream, stream_version = excluded.stream_version, line = null, place = null, steps = null, cause = excluded.cause, emitted_at = null, consumer = excluded.consumer;

-- Receive writes rows of received messages, as row does for one message, in the given order. The
-- version 0 means that a message has no version in a stream.

-- name: receive
insert into {prefix}inbox as i (revision, scope, id, long_id, conflict, version, sum, surrogate, state, reason,
  topic, partition, "offset", broker_id, key, type, schema, envelope, payload,
  received_at, changed_at, started, finished, repeated, first_error, last_error, due_at, stream, stream_version, cause, consumer)
select 1, a.scope, a.id, a.long_id, '', a.version, a.sum, false, 'RECEIVED', '',
  a.topic, a.partition, a."offset", a.broker_id, a.key, a.type, a.schema, a.envelope, a.payload,
  date_trunc('milliseconds', clock_timestamp()), date_trunc('milliseconds', clock_timestamp()), 0, 0, 0, '', '',
  date_trunc('milliseconds', clock_timestamp()), a.stream, nullif(a.stream_version, 0), a.cause,
  coalesce((select s.consumer from {prefix}scopes s where s.number = a.scope), '')
from unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bytea[], $6::text[], $7::bigint[], $8::bigint[], $9::text[],
  $10::bytea[], $11::text[], $12::text[], $13::text[], $14::bytea[], $15::bytea[], $16::bigint[], $17::bytea[]) with ordinality
  a (scope, id, long_id, version, sum, topic, partition, "offset", broker_id,
    key, type, schema, envelope, payload, stream, stream_version, cause, place)
where current_setting('array_nulls') = 'on'
order by a.place
on conflict (scope, id, conflict) do update
set revision = i.revision + 1, token = null, locked_until = null,
  version = excluded.version, sum = excluded.sum, surrogate = excluded.surrogate, state = excluded.state, reason = excluded.reason, topic = excluded.topic, partition = excluded.partition,
  "offset" = excluded."offset", broker_id = excluded.broker_id, key = excluded.key, type = excluded.type, schema = excluded.schema, envelope = excluded.envelope, payload = excluded.payload,
  received_at = excluded.received_at, changed_at = excluded.changed_at, started = excluded.started, finished = excluded.finished, first_error = excluded.first_error, last_error = excluded.last_error, due_at = excluded.due_at,
  stream = excluded.stream, stream_version = excluded.stream_version, line = null, place = null, steps = null, cause = excluded.cause, emitted_at = null, consumer = excluded.consumer;

-- name: conflict row
insert into {prefix}inbox as i (revision, scope, id, long_id, conflict, version, sum, surrogate, state, reason,
  topic, partition, "offset", broker_id, key, type, schema, envelope, payload,
  received_at, changed_at, started, finished, repeated, first_error, last_error, due_at, stream, stream_version, cause, consumer)
values (1, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
  date_trunc('milliseconds', clock_timestamp()), date_trunc('milliseconds', clock_timestamp()), $19, $20, 0, $21, $22,
  date_trunc('milliseconds', clock_timestamp()) + $23::bigint * interval '1 millisecond', $24, $25, $26,
  coalesce((select s.consumer from {prefix}scopes s where s.number = $1), ''))
on conflict (scope, id, conflict) do update
set repeated = i.repeated + 1, revision = i.revision + 1, changed_at = greatest(i.changed_at, clock_timestamp());

-- name: repeat
update {prefix}inbox set repeated = repeated + 1, revision = revision + 1, changed_at = greatest(changed_at, clock_timestamp())
where scope = $1 and id = $2 and conflict = $3;

-- name: row columns
i.number, i.revision, s.consumer, s.source, i.id, i.long_id, i.conflict, i.version, i.sum, i.surrogate::int,
  i.state, i.reason, i.finished, i.repeated, i.first_error, i.last_error,
  (extract(epoch from nullif(nullif(i.received_at, 'infinity'), '-infinity')) * 1000)::bigint, (extract(epoch from nullif(nullif(i.changed_at, 'infinity'), '-infinity')) * 1000)::bigint,
  i.started - i.finished, (extract(epoch from nullif(nullif(i.due_at, 'infinity'), '-infinity')) * 1000)::bigint, (extract(epoch from nullif(nullif(i.locked_until, 'infinity'), '-infinity')) * 1000)::bigint,
  i.stream, i.stream_version, i.line, i.place,
  i.calls_started, i.calls_finished, (extract(epoch from i.called_at) * 1000)::bigint,
  i.steps,
  i.topic, i.partition, i."offset", i.broker_id, i.key, i.type, i.envelope, length(i.payload)::bigint,
  case when $1::boolean then i.payload end, (i.payload is null and i.body_removed_at is not null)::int

-- name: rows
select {columns}
from {prefix}inbox i left join {prefix}scopes s on s.number = i.scope
where i.number > $2{filter} order by {order} limit $3;

-- Upkeep counts, each up to ten thousand: parked rows of a consumer, claims whose lease has ended,
-- and rows with calls of unknown outcome. It also counts how many of the latest rows have a
-- duplicate.

-- name: upkeep
with rows as materialized (
  select i.state, i.changed_at, i.locked_until, i.calls_started > i.calls_finished and i.state <> 'IN_PROGRESS' as unknown, i.reason
  from {prefix}scopes s join {prefix}inbox i on i.scope = s.number
  where s.consumer = $1 and i.state in ('IN_PROGRESS', 'FAILED_RETRYABLE', 'PARKED', 'DEAD_LETTERED') limit 10000
), latest as materialized (
  select i.repeated from {prefix}scopes s join {prefix}inbox i on i.scope = s.number where s.consumer = $1 order by i.number desc limit 10000
)
select count(*) filter (where state = 'PARKED' and reason <> 'suppressed'),
  coalesce((extract(epoch from clock_timestamp() - min(changed_at) filter (where state = 'PARKED' and reason <> 'suppressed')) * 1000)::bigint, 0),
  count(*) filter (where state = 'IN_PROGRESS' and locked_until < clock_timestamp() - interval '1 minute'),
  count(*) filter (where unknown),
  count(*) filter (where reason = 'kills its process'),
  (select count(*) from latest where repeated > 0), (select count(*) from latest)
from rows;

-- Denied reads a page of rows, by number, and returns the rows that contradict their markers or
-- streams. No commit of Semel writes such rows. The last result row has the last number of the page
-- and the number of rows in the page.
--
-- A parked, dead-lettered or discarded row may have no marker. The marker may also belong to
-- another content of the same identity, or to another row with the same content (law 16). A
-- conflict that waits or was applied owns the marker.

-- name: denied
with page as materialized (
  select i.number, i.scope, i.id, i.state, i.reason, i.stream, i.stream_version, length(i.conflict) = 0 and not i.surrogate as own,
    i.surrogate, i.version, i.sum
  from {prefix}inbox i where i.number > $2 order by i.number limit $3
), wrong as (
  select p.number, p.state, coalesce(m.outcome, 0) as outcome
  from page p join {prefix}scopes s on s.number = p.scope and s.consumer = $1
  left join {prefix}markers m on m.scope = p.scope and m.id = p.id
  where p.own and case p.state when 'COMPLETED' then coalesce(m.outcome, 0) <> 1
    when 'RECEIVED' then coalesce(m.outcome, 0) <> 2 when 'IN_PROGRESS' then coalesce(m.outcome, 0) <> 2
    when 'FAILED_RETRYABLE' then coalesce(m.outcome, 0) <> 2 when 'BLOCKED' then coalesce(m.outcome, 0) <> 2
    else m.version = p.version and m.sum is not distinct from p.sum and case p.state
      when 'PARKED' then m.outcome <> 3 when 'DEAD_LETTERED' then m.outcome <> 4 when 'DISCARDED' then m.outcome <> 5 else false end
      and not exists (
        select 1 from {prefix}inbox o where o.scope = p.scope and o.id = p.id and o.number <> p.number and o.version = p.version and o.sum is not distinct from p.sum
          and m.outcome = case o.state when 'COMPLETED' then 1 when 'PARKED' then 3 when 'DEAD_LETTERED' then 4 when 'DISCARDED' then 5 else 2 end) end
  or not p.own and not p.surrogate and case p.state when 'COMPLETED' then m.outcome <> 1
    when 'RECEIVED' then m.outcome <> 2 when 'IN_PROGRESS' then m.outcome <> 2 when 'FAILED_RETRYABLE' then m.outcome <> 2 else false end
), astray as (
  select p.number, p.state, coalesce(t.last, -1) as last
  from page p join {prefix}scopes s on s.number = p.scope and s.consumer = $1
  left join {prefix}streams t on t.scope = p.scope and t.name = p.stream
  where p.own and p.stream is not null and case p.state when 'COMPLETED' then coalesce(t.last, -1) < p.stream_version
    when 'BLOCKED' then coalesce(t.last, -1) >= p.stream_version - 1
    when 'PARKED' then p.reason = 'gap' and coalesce(t.last, -1) >= p.stream_version - 1 else false end
)
select number, state, outcome::bigint, null::bigint from wrong
union all select number, state, 0, last from astray where number not in (select number from wrong)
union all select coalesce(max(number), 0), '', count(*), null from page;

-- Causes returns the causes of the rows that a consumer has written as intents. It skips rows that
-- were sent again: their received_at is the time of the resend, so the time at which the intent was
-- written is unknown.

-- name: causes
select i.number, i.cause from {prefix}inbox i join {prefix}scopes s on s.number = i.scope
where s.source = $1 and i.number > $2 and i.number <= $3 and i.cause is not null and i.emitted_at is null;

-- The changes of operators (acts) are passed as JSON: k is an index, n the number of a row, and r
-- the revision that the operator saw. claims.sql explains the conditions on k and n.
--
-- Acted rows locks the rows with their markers, in the same order as claim ends, and returns them.
-- {busy} is " skip locked" if there are several rows: an act that waits for one lock while it holds
-- others could deadlock with consumers.

-- name: acted rows
with asked as materialized (
  select a.n from jsonb_to_recordset($1::text::jsonb) a (k bigint, n bigint, r bigint)
  where a.k between 0 and 1000000 and a.n > 0
), marked as materialized (
  select i.number, i.revision, i.state, i.scope, i.id, i.conflict, i.version, i.sum, i.due_at, i.reason, i.calls_started > i.calls_finished as unknown, i.line,
    coalesce(i.place, 0) as place, coalesce(i.stream, '') as stream, i.payload is null and i.body_removed_at is not null as bodiless,
    m.outcome as marker_outcome, m.version as marker_version, m.sum as marker_sum
  from asked a join {prefix}inbox i on i.number = a.n
  join {prefix}markers m on m.scope = i.scope and m.id = i.id
  order by i.number for update of i, m{busy}
), unmarked as materialized (
  select i.number, i.revision, i.state, i.scope, i.id, i.conflict, i.version, i.sum, i.due_at, i.reason, i.calls_started > i.calls_finished as unknown, i.line,
    coalesce(i.place, 0) as place, coalesce(i.stream, '') as stream, i.payload is null and i.body_removed_at is not null as bodiless
  from asked a join {prefix}inbox i on i.number = a.n
  where not exists (select 1 from {prefix}markers m where m.scope = i.scope and m.id = i.id)
  order by i.number for update of i{busy}
)
select r.number, r.revision, r.state, r.scope, r.id, r.conflict, r.version, r.sum, coalesce(r.due_at <= clock_timestamp(), false),
  r.reason, r.unknown, r.line, r.place, r.stream, r.bodiless, r.marker_outcome, r.marker_version, r.marker_sum
from (select * from marked union all select u.*, null::smallint, null::smallint, null::bytea from unmarked u) r;


-- Other rows returns, for each of the given rows, the other rows of the same identity. Each of them
-- has another content.

-- name: other rows
select i.number, o.number, o.state, length(o.conflict) > 0, o.version, o.sum, o.steps is not null, o.calls_started > o.calls_finished
from jsonb_to_recordset($1::text::jsonb) a (k bigint, n bigint, r bigint)
join {prefix}inbox i on i.number = a.n
join {prefix}inbox o on o.scope = i.scope and o.id = i.id and o.number <> i.number
where a.k between 0 and 1000000 and a.n > 0 order by i.number, o.number;

-- Complete rows completes rows after an operator has found out that their effects exist. Forget
-- calls removes the record of calls from rows, as if no call had been made.


-- name: complete rows
update {prefix}inbox i set state = 'COMPLETED', revision = i.revision + 1,
  changed_at = clock_timestamp(), processed_at = clock_timestamp(),
  token = null, due_at = null, locked_until = null, started = i.finished,
  calls_finished = i.calls_started, call_token = null
from jsonb_to_recordset($1::text::jsonb) a (k bigint, n bigint, r bigint)
where a.k between 0 and 1000000 and a.n > 0 and i.number = a.n and i.revision = a.r;

-- name: forget calls
update {prefix}inbox i set calls_started = 0, calls_finished = 0, called_at = null, call_token = null, started = i.finished, emitted_at = null
from jsonb_to_recordset($1::text::jsonb) a (k bigint, n bigint)
where a.k between 0 and 1000000 and a.n > 0 and i.number = a.n;

-- Caused returns the rows that the given messages have caused. Emit row makes a row due again under
-- the same identity. A call of such a row counts as a call of unknown outcome. An earlier release,
-- which does not read emitted_at, therefore makes no second call after the other side has forgotten
-- the key.

-- name: caused
select i.number, i.revision, s.consumer, i.state, i.calls_started, i.calls_finished,
  coalesce((extract(epoch from clock_timestamp() - i.called_at) * 1000)::bigint, 0),
  coalesce(greatest((extract(epoch from clock_timestamp() - i.processed_at) * 1000)::bigint, 0), 0),
  i.body_removed_at is not null
from unnest($1::bytea[]) a (cause)
join {prefix}inbox i on i.cause = a.cause
join {prefix}scopes s on s.number = i.scope
order by i.number;

-- name: emit row
update {prefix}inbox set state = 'RECEIVED', reason = '', revision = revision + 1, changed_at = clock_timestamp(),
  received_at = date_trunc('milliseconds', clock_timestamp()), emitted_at = clock_timestamp(), due_at = date_trunc('milliseconds', clock_timestamp()),
  token = null, locked_until = null, place = null, started = 0, finished = 0, first_error = '', last_error = '',
  calls_finished = calls_started - 1, call_token = null
where number = $1 and revision = $2;

-- name: discard rows
update {prefix}inbox i set state = 'DISCARDED', revision = i.revision + 1,
  changed_at = clock_timestamp(), processed_at = clock_timestamp(),
  token = null, due_at = null, locked_until = null,
  started = i.finished
from jsonb_to_recordset($1::text::jsonb) a (k bigint, n bigint, r bigint)
where a.k between 0 and 1000000 and a.n > 0 and i.number = a.n and i.revision = a.r;

-- Reopen rows does not change the reasons of the rows if the given reason is empty.

-- name: reopen rows
update {prefix}inbox i set state = 'PARKED', reason = case when $2::text = '' then i.reason else $2::text end, revision = i.revision + 1,
  changed_at = clock_timestamp(), processed_at = null, place = null
from jsonb_to_recordset($1::text::jsonb) a (k bigint, n bigint, r bigint)
where a.k between 0 and 1000000 and a.n > 0 and i.number = a.n and i.revision = a.r;

-- name: over row
update {prefix}inbox set state = $1::text, revision = revision + 1, changed_at = clock_timestamp(), processed_at = clock_timestamp(),
  reason = case $2::text when '' then reason else $2::text end,
  first_error = case first_error when '' then $3::text else first_error end,
  last_error = case $3::text when '' then last_error else $3::text end,
  token = null, due_at = null, locked_until = null, started = finished
where number = $4 and revision = $5;

-- name: suppress rows
update {prefix}inbox i set state = 'PARKED', reason = $2, revision = i.revision + 1, changed_at = clock_timestamp(), due_at = null
from jsonb_to_recordset($1::text::jsonb) a (k bigint, n bigint, r bigint)
where a.k between 0 and 1000000 and a.n > 0 and i.number = a.n and i.revision = a.r;

-- name: record acts
insert into {prefix}acts ("row", verb, who, why, result, at)
select a.n, $2::text, $3::text, $4::text, $5::text, clock_timestamp() from jsonb_to_recordset($1::text::jsonb) a (k bigint, n bigint, r bigint) order by a.k;

-- name: acts
select "row", verb, who, why, result, (extract(epoch from at) * 1000)::bigint from {prefix}acts
where $1::bigint in (0, "row") order by number limit $2;
