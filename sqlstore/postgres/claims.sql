-- Claims are passed as JSON: n is the number of a row, t a token, k an index. The conditions on k
-- and n in the statements are always true. With them, the planner expects one claim instead of a
-- hundred, and finds rows by number and markers by identity. With an estimate of ten claims, the
-- planner read all markers of a table without statistics for a few claims, and kept that plan while
-- the table grew. The parentheses around a condition on the state prevent the use of the index on
-- states, which changes often.

-- Due rows are found through the consumer, in the order in which they are due. A search in each
-- scope of the consumer would take longer the more sources the consumer has.

-- name: claim
with due as materialized (
  select i.number, i.due_at, i.state, i.started > i.finished as doubted, coalesce(length(i.payload), 0)::bigint as size
  from {prefix}inbox i
  where i.consumer = $2 and i.state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED') and i.due_at <= statement_timestamp()
    and ($7::text = '' or i.number in (select value::bigint from jsonb_array_elements_text(nullif($7::text, '')::jsonb)))
  order by i.due_at, i.number limit $4::int
  for update of i skip locked
), sized as (
  select number, state, doubted, row_number() over w as place, sum(size) over w as bytes
  from due window w as (order by due_at, number)
), taken as materialized (
  select * from sized where place = 1 or $5::bigint = 0 or bytes <= $5::bigint::numeric
), claimed as (
  update {prefix}inbox i
  set state = 'IN_PROGRESS', token = $3, revision = i.revision + 1, changed_at = clock_timestamp(),
    started = greatest(i.started, i.finished + (t.state = 'IN_PROGRESS')::int),
    due_at = clock_timestamp() + $6::bigint * interval '1 millisecond',
    locked_until = clock_timestamp() + $6::bigint * interval '1 millisecond'
  from taken t
  where i.number = t.number
  returning i.number, t.place, t.state = 'IN_PROGRESS' or t.doubted as suspect, t.state = 'BLOCKED' as blocked
)
select {columns}, c.suspect::int, $6::bigint, c.blocked::int
from claimed c join {prefix}inbox i on i.number = c.number
left join lateral (select s.consumer, s.source from {prefix}scopes s where s.number = i.scope limit 1) s on true
order by c.place;

-- Cut ahead corrects rows that were written while the database's clock was ahead. The times of such
-- a row are in the future: changed_at, and the time at which the row is due or its lease ends. Cut
-- ahead keeps the length of each wait, and lets the wait begin now. It returns the number of rows
-- and the largest difference in milliseconds. Differences of up to one second are ignored, because
-- they come from small clock corrections. If the start of the first call is in the future, it is
-- unknown, and cut ahead writes the epoch, as start calls does.

-- name: cut ahead
with ahead as materialized (
  select i.number, (extract(epoch from i.changed_at - statement_timestamp()) * 1000)::bigint as by from {prefix}inbox i
  where i.state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED')
    and i.due_at > statement_timestamp() + interval '1 second' and isfinite(i.due_at)
    and i.changed_at > statement_timestamp() + interval '1 second' and isfinite(i.changed_at)
    and ($1::text = '' or i.number in (select value::bigint from jsonb_array_elements_text(nullif($1::text, '')::jsonb)))
  limit 1000 for update of i skip locked
), cut as (
  update {prefix}inbox i set changed_at = statement_timestamp(), received_at = least(i.received_at, statement_timestamp()),
    due_at = statement_timestamp() + greatest(i.due_at - i.changed_at, interval '0'),
    locked_until = case when i.locked_until is not null then statement_timestamp() + greatest(i.due_at - i.changed_at, interval '0') end,
    called_at = case when i.called_at > statement_timestamp() + interval '1 second' then to_timestamp(0::double precision) else i.called_at end
  from ahead a where i.number = a.number
  returning a.by
)
select count(*), coalesce(max(by), 0) from cut;

-- name: held
select {columns}, 1, greatest((extract(epoch from i.locked_until - clock_timestamp()) * 1000)::bigint, 0), 0
from {prefix}inbox i join {prefix}scopes s on s.number = i.scope
where i.consumer = $2 and i.state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED') and (i.state = 'IN_PROGRESS') is true and i.token = $3
order by i.number;

-- Look returns the claims that are still held, and whether other code has already applied the
-- identity.

-- name: look
select c.k, false from jsonb_to_recordset($1::text::jsonb) c (k bigint, n bigint, t bigint)
join {prefix}inbox i on i.number = c.n
join {prefix}markers m on m.scope = i.scope and m.id = i.id
where c.k between 0 and 1000000 and c.n > 0 and i.token = c.t and (i.state = 'IN_PROGRESS') is true and i.locked_until > clock_timestamp() and {owned};

-- Begin claims combines begin and look, for a batch that has only claims.

-- name: begin claims
with settings as materialized (
  select set_config('idle_in_transaction_session_timeout', $3, true), set_config('lock_timeout', $4, true),
    set_config('statement_timeout', case
      when $5::text = '0' or current_setting('statement_timeout')::interval between '1ms' and $5::text::interval
      then current_setting('statement_timeout') else $5::text end, true)
), guarded as (
  insert into {prefix}guard (number) select pg_current_xact_id()::text::bigint from settings
)
select c.k - 1, false from unnest($1::bigint[], $2::bigint[]) with ordinality c (n, t, k)
join {prefix}inbox i on i.number = c.n
join {prefix}markers m on m.scope = i.scope and m.id = i.id
where c.k between 0 and 1000000 and c.n > 0 and i.token = c.t and (i.state = 'IN_PROGRESS') is true and i.locked_until > clock_timestamp() and {owned};

-- Begin queued claims is begin claims without a guard, for a batch whose handlers do not use the
-- transaction of the batch: the batch writes only at its end, with one statement. A result row
-- without an index means that settings of the connection can prevent writes; with a guard, the
-- insert of the guard would have failed.

-- name: begin queued claims
with settings as materialized (
  select set_config('idle_in_transaction_session_timeout', $3, true) as set, set_config('lock_timeout', $4, true),
    set_config('statement_timeout', case
      when $5::text = '0' or current_setting('statement_timeout')::interval between '1ms' and $5::text::interval
      then current_setting('statement_timeout') else $5::text end, true)
)
select c.k - 1, false from unnest($1::bigint[], $2::bigint[]) with ordinality c (n, t, k)
join {prefix}inbox i on i.number = c.n
join {prefix}markers m on m.scope = i.scope and m.id = i.id
where c.k between 0 and 1000000 and c.n > 0 and i.token = c.t and (i.state = 'IN_PROGRESS') is true and i.locked_until > clock_timestamp() and {owned}
union all
select null, true from settings
where settings.set is null or current_setting('transaction_read_only') <> 'off' or current_user <> session_user;

-- Lease ends is the end of a row's lease. If the row was claimed while the clock was ahead, the
-- lease has its full length from now. Extend sets changed_at, so that the length of a lease can be
-- computed from the row.

-- name: lease ends
case when i.changed_at > clock_timestamp() and isfinite(i.changed_at) and isfinite(i.due_at)
    then clock_timestamp() + (i.due_at - i.changed_at) else i.due_at end

-- name: extend
with asked as materialized (
  select * from jsonb_to_recordset($1::text::jsonb) c (k bigint, n bigint, t bigint)
  where c.k between 0 and 1000000 and c.n > 0
), held as (
  select i.number from {prefix}inbox i join asked a on a.n = i.number
  where i.token = a.t and (i.state = 'IN_PROGRESS') is true
  order by i.number for update of i skip locked
), moved as (
  update {prefix}inbox i
  set changed_at = clock_timestamp(),
    due_at = greatest({lease ends}, clock_timestamp() + $2::bigint * interval '1 millisecond'),
    locked_until = greatest({lease ends}, clock_timestamp() + $2::bigint * interval '1 millisecond')
  from held h where i.number = h.number
)
select a.k from asked a
where not exists (select 1 from {prefix}inbox i where i.number = a.n and i.token = a.t and (i.state = 'IN_PROGRESS') is true);

-- name: start claims
with asked as materialized (
  select * from jsonb_to_recordset($1::text::jsonb) c (k bigint, n bigint, t bigint)
  where c.k between 0 and 1000000 and c.n > 0
), held as (
  select i.number, a.k from {prefix}inbox i join asked a on a.n = i.number
  where i.token = a.t and (i.state = 'IN_PROGRESS') is true
  order by i.number for update of i
), started as (
  update {prefix}inbox i set started = i.started + 1, revision = i.revision + 1, changed_at = greatest(i.changed_at, clock_timestamp())
  from held h where i.number = h.number
)
select a.k from asked a where a.k not in (select k from held);

-- Start calls returns the claims that are still held.

-- name: start calls
with asked as materialized (
  select * from jsonb_to_recordset($1::text::jsonb) c (k bigint, n bigint, t bigint)
  where c.k between 0 and 1000000 and c.n > 0
), held as (
  select i.number, a.k, a.t from {prefix}inbox i join asked a on a.n = i.number
  join {prefix}markers m on m.scope = i.scope and m.id = i.id
  where i.token = a.t and (i.state = 'IN_PROGRESS') is true and {owned}
  order by i.number for update of i
), started as (
  update {prefix}inbox i
  set calls_started = i.calls_started + (i.call_token is distinct from h.t)::int, call_token = h.t,
    called_at = case when i.called_at > clock_timestamp() + interval '1 second' then to_timestamp(0::double precision) else coalesce(i.called_at, clock_timestamp()) end,
    revision = i.revision + 1, changed_at = clock_timestamp(),
    due_at = greatest({lease ends}, clock_timestamp() + $2::bigint * interval '1 millisecond'),
    locked_until = greatest({lease ends}, clock_timestamp() + $2::bigint * interval '1 millisecond')
  from held h where i.number = h.number
  returning h.k, i.calls_started, i.calls_finished, i.called_at, i.emitted_at is not null as again
)
select k, calls_started, calls_finished, (extract(epoch from clock_timestamp() - called_at) * 1000)::bigint, again from started;

-- Call ends records the outcome of a call: 1 no call was made, 2 the outcome is unknown, 3 this
-- call had no effect, 4 the outcomes of all calls are known.

-- name: call ends
calls_started = i.calls_started - (h.call = 1 and i.call_token is not distinct from i.token)::int,
    calls_finished = case when h.call = 4 then i.calls_started else i.calls_finished + (h.call = 3 and i.call_token is not distinct from i.token)::int end,
    called_at = case when h.call = 1 and i.call_token is not distinct from i.token and i.calls_started = 1 then null else i.called_at end,
    call_token = case when h.call = 0 then i.call_token end

-- name: row ends
state = h.state, token = null, locked_until = null,
    due_at = case when h.outcome = 2 then date_trunc('milliseconds', clock_timestamp()) + h.after * interval '1 millisecond' end,
    revision = i.revision + 1, changed_at = clock_timestamp(),
    processed_at = case when h.outcome = 2 then i.processed_at else clock_timestamp() end,
    started = case when h.taken < 0 then i.finished + h.ran else i.started - h.taken + h.ran end, finished = i.finished + h.ran,
    stream = case when h.place > 0 then decode(h.stream, 'hex') else i.stream end,
    stream_version = case when h.place > 0 then h.place else i.stream_version end,
    reason = case h.reason when '' then i.reason else h.reason end,
    first_error = case when i.first_error = '' then h.error else i.first_error end,
    last_error = case h.error when '' then i.last_error else h.error end

-- name: claim ends
with asked as materialized (
  select * from jsonb_to_recordset($1::text::jsonb)
    c (k bigint, n bigint, t bigint, state text, outcome smallint, after bigint, reason text, error text, ran bigint, taken bigint, stream text, place bigint, call bigint)
  where c.k between 0 and 1000000 and c.n > 0
), held as (
  select i.number, i.scope, i.id, a.k, a.state, a.outcome, a.after, a.reason, a.error, a.ran, a.taken, a.stream, a.place, a.call
  from {prefix}inbox i join asked a on a.n = i.number
  join {prefix}markers m on m.scope = i.scope and m.id = i.id
  where i.token = a.t and (i.state = 'IN_PROGRESS') is true and {owned}
  order by i.number for update of i, m
), ended as (
  update {prefix}inbox i
  set {row ends}, {call ends}
  from held h where i.number = h.number
  returning h.k
), marked as (
  update {prefix}markers m set outcome = h.outcome, at = clock_timestamp()
  from held h where m.scope = h.scope and m.id = h.id
  returning h.k
)

-- name: end claims
{claim ends}
select e.k from ended e join marked m on m.k = e.k;

-- Close claims counts the rows that were written instead of the rows that were found, because a
-- trigger can prevent a write.

-- name: close claims
{claim ends}
select case when c.ended = c.asked then 1 else {prefix}stand(c.ended, c.asked) end
from (select least((select count(*) from ended), (select count(*) from marked)) as ended, (select count(*) from asked) as asked) c;

-- Close claim is close claims for a single claim. It needs no order and takes no locks before it
-- writes. This halves the work of a transaction with one message.

-- name: close claim
with asked as (
  select $1::bigint as n, $2::bigint as t, $3::text as state, $4::smallint as outcome, $5::bigint as after,
    $6::text as reason, $7::text as error, $8::bigint as ran, $9::bigint as taken, $10::text as stream, $11::bigint as place
), ended as (
  update {prefix}inbox i
  set {row ends}
  from asked h where i.number = h.n and i.token = h.t and (i.state = 'IN_PROGRESS') is true
  returning i.scope, i.id, i.conflict, i.version, i.sum
), marked as (
  update {prefix}markers m set outcome = h.outcome, at = clock_timestamp()
  from ended i, asked h where m.scope = i.scope and m.id = i.id and {owned}
  returning 1
)
select case (select count(*) from marked) when 1 then 1 else {prefix}stand(0::bigint, 1::bigint) end;

-- name: reclaim
with asked as materialized (
  select value::bigint as n, place from jsonb_array_elements_text($1::text::jsonb) with ordinality a (value, place)
  where place between 0 and 1000000 and value::bigint > 0
), held as (
  select i.number, i.state, i.token from {prefix}inbox i join asked a on a.n = i.number
  order by i.number for update of i
), mine as (
  select number from held
  where state = 'IN_PROGRESS' and token in (select value::bigint from jsonb_array_elements_text($2::text::jsonb))
), taken as (
  update {prefix}inbox i set token = $3, revision = i.revision + 1, changed_at = greatest(i.changed_at, clock_timestamp())
  from mine where i.number = mine.number
)
select coalesce(h.state, ''), h.number is not null and h.number in (select number from mine)
from asked a left join held h on h.number = a.n order by a.place;

-- name: pending
select count(*) filter (where i.due_at <= statement_timestamp()),
  count(*) filter (where (i.due_at > statement_timestamp()) is not false and i.state not in ('IN_PROGRESS', 'BLOCKED')),
  count(*) filter (where (i.due_at > statement_timestamp()) is not false and i.state = 'IN_PROGRESS'),
  count(*) filter (where (i.due_at > statement_timestamp()) is not false and i.state = 'BLOCKED'),
  coalesce((extract(epoch from min(i.due_at) filter (where i.due_at > statement_timestamp() and isfinite(i.due_at) and i.state not in ('IN_PROGRESS', 'BLOCKED')) - statement_timestamp()) * 1000)::bigint, 0),
  coalesce((extract(epoch from statement_timestamp() - min(i.received_at) filter (where isfinite(i.received_at))) * 1000)::bigint, 0)
from {prefix}inbox i
where i.consumer = $1 and i.state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED');

-- name: requeue rows
update {prefix}inbox i set state = $2, revision = i.revision + 1, changed_at = clock_timestamp(), processed_at = null,
  place = case when i.state = 'DEAD_LETTERED' then null else i.place end, -- it has left its line
  token = null, locked_until = null, due_at = date_trunc('milliseconds', clock_timestamp())
from jsonb_to_recordset($1::text::jsonb) a (k bigint, n bigint, r bigint)
where a.k between 0 and 1000000 and a.n > 0 and i.number = a.n and i.revision = a.r;

-- name: markers wait
update {prefix}markers m set outcome = 2, version = i.version, sum = i.sum, at = clock_timestamp()
from jsonb_to_recordset($1::text::jsonb) a (k bigint, n bigint, r bigint) join {prefix}inbox i on i.number = a.n
where a.k between 0 and 1000000 and a.n > 0 and m.scope = i.scope and m.id = i.id;

-- Owned checks that the marker m waits for the row i, and that the row owns the marker (law 16). If
-- two rows have the content of the marker, the first row owns the marker while the first row waits.

-- name: owned
m.outcome = 2 and m.version = i.version and m.sum is not distinct from i.sum and (i.conflict = '' or not exists (
  select 1 from {prefix}inbox o where o.scope = i.scope and o.id = i.id and o.conflict = '' and o.version = i.version
    and o.sum is not distinct from i.sum and o.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED')));
