-- name: markers
{prefix}markers;

-- name: serial
select set_config('idle_in_transaction_session_timeout', $2, true), set_config('lock_timeout', $3, true),
  (select count(pg_advisory_xact_lock(hashtextextended(encode(consumer, 'hex') || ' {prefix}', 0)))
  from {prefix}scopes where number = $1);

-- Writing is a part of begin and begin new. It sets the timeouts of the transaction, writes the
-- guard, and writes the markers.

-- name: writing
with settings as materialized (
  select set_config('idle_in_transaction_session_timeout', $7, true), set_config('lock_timeout', $8, true),
    set_config('statement_timeout', case
      when $10::text = '0' or current_setting('statement_timeout')::interval between '1ms' and $10::text::interval
      then current_setting('statement_timeout') else $10::text end, true)
), guarded as (
  insert into {prefix}guard (number) select pg_current_xact_id()::text::bigint from settings
), written as (
  insert into {prefix}markers (scope, id, outcome, version, sum, long_id, at)
  select a.scope, a.id, a.outcome, a.version, a.sum, a.long_id, clock_timestamp()
  from settings cross join unnest($1::bigint[], $2::bytea[], $3::smallint[], $4::smallint[], $5::bytea[], $6::bytea[])
    a (scope, id, outcome, version, sum, long_id)
  order by a.scope, a.id;

-- name: begin
{writing}
  on conflict (scope, id) do nothing
  returning scope, id
)
select scope, id from written
union all
select null, null from settings where set_config('lock_timeout', $9, true) is null;

-- Begin new is begin for markers that are all expected to be new. It counts the markers, and fails
-- with SQLSTATE 23505 if one of them exists. It does not return each marker, which halves the cost
-- of a marker.

-- name: begin new
{writing}
  returning 1
)
select count(*) from written
union all
select null from settings where set_config('lock_timeout', $9, true) is null;

-- name: mark
insert into {prefix}markers (scope, id, outcome, version, sum, long_id, at)
select a.scope, a.id, a.outcome, a.version, a.sum, a.long_id, clock_timestamp()
from unnest($1::bigint[], $2::bytea[], $3::smallint[], $4::smallint[], $5::bytea[], $6::bytea[])
  a (scope, id, outcome, version, sum, long_id)
order by a.scope, a.id
on conflict (scope, id) do nothing
returning scope, id;

-- The number is an index. The condition that the number is small makes the planner expect a single
-- marker and find each marker by its identity; see claims.sql.

-- name: judge
select a.number, m.outcome, m.version, m.sum, exists (
  select 1 from {prefix}inbox i where i.scope = a.scope and i.id = a.id and i.conflict = a.conflict)
from unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[]) a (number, scope, id, conflict)
join {prefix}markers m on m.scope = a.scope and m.id = a.id
where a.number between 0 and 1000000;

-- name: trim
delete from {prefix}markers m using unnest($1::bigint[], $2::bytea[]) with ordinality a (scope, id, k)
where m.scope = a.scope and m.id = a.id and a.k between 0 and 1000000;

-- name: unguard
delete from {prefix}guard where number = pg_current_xact_id()::text::bigint;

-- Unguard keeping combines unguard and keep result in one round trip.

-- name: unguard keeping
with kept as (
  insert into {prefix}results (scope, id, result) values ($1, $2, $3)
  on conflict (scope, id) do update set result = excluded.result
  returning scope
)
delete from {prefix}guard where number = pg_current_xact_id()::text::bigint and exists (select 1 from kept);

-- name: guarded
select exists (select 1 from {prefix}guard where number = pg_current_xact_id_if_assigned()::text::bigint);

-- name: unlimited
select set_config('statement_timeout', '0', true);

-- name: limit
select set_config('statement_timeout', case
  when $1::text = '0' or current_setting('statement_timeout')::interval between '1ms' and $1::text::interval
  then current_setting('statement_timeout') else $1::text end, true);

-- name: guard
insert into {prefix}guard (number) values (pg_current_xact_id()::text::bigint);

-- name: lock
select set_config('idle_in_transaction_session_timeout', '30s', true), set_config('lock_timeout', '10s', true);

-- name: outcome
update {prefix}markers set outcome = $1 where scope = $2 and id = $3;

-- Turn markers changes only markers that still have the content that was read before. Such a marker
-- still belongs to the same row.

-- name: turn markers
update {prefix}markers m set outcome = a.outcome, version = a.version, sum = decode(a.sum, 'hex'), at = clock_timestamp()
from jsonb_to_recordset($1::text::jsonb)
  a (k bigint, n bigint, outcome smallint, version smallint, sum text, seen_outcome smallint, seen_version smallint, seen_sum text)
join {prefix}inbox i on i.number = a.n
where a.k between 0 and 1000000 and a.n > 0 and m.scope = i.scope and m.id = i.id
  and m.outcome = a.seen_outcome and m.version = a.seen_version and m.sum is not distinct from decode(a.seen_sum, 'hex');

-- name: close
with ended as (
  delete from {prefix}guard where number = pg_current_xact_id()::text::bigint returning 1
)
select case count(*) when 1 then 1 else {prefix}expect(count(*)) end from ended;

-- name: exec one
with changed as (
{statement}
returning 1)
select case count(*) when 1 then 1 else {prefix}expect(count(*)) end from changed;
