-- Statements of a store that also writes its markers to a user's own table. They replace the
-- statements with the same names. For every identity, the store writes Semel's marker first. If
-- that marker is new and has the outcome applied, the store also writes a row to the user's table.
-- An identity is new if both writes succeed: the unique key of the user's table decides between
-- this store and other code. If the user's table already has the identity, the marker gets the
-- outcome applied, without a fingerprint, because the content of that message is unknown.
--
-- The statements compute conditions as columns, and look up rows of the user's table in a set.
-- Otherwise a wrong estimate of the planner could join every identity with every row.
--
-- A column of the user's table can have a type without its own operators, such as varchar.
-- Comparisons of such columns therefore name the built-in operator.
--
-- In the statements, k is an identity: k.old is its id as a value of the user's column, or NULL if
-- the engine generated the id; k.origin is its source, if the user's table has a column for the
-- source.

-- name: begin
with settings as materialized (
  select set_config('idle_in_transaction_session_timeout', $7, true), set_config('lock_timeout', $8, true),
    set_config('statement_timeout', case
      when $10::text = '0' or current_setting('statement_timeout')::interval between '1ms' and $10::text::interval
      then current_setting('statement_timeout') else $10::text end, true)
), guarded as (
  insert into {prefix}guard (number) select pg_current_xact_id()::text::bigint from settings
), asked as (
  select distinct on (a.scope, a.id) a.scope, a.id, a.outcome, a.version, a.sum, a.long_id, {origin} as origin, {old} as old
  from settings cross join unnest($1::bigint[], $2::bytea[], $3::smallint[], $4::smallint[], $5::bytea[], $6::bytea[]) with ordinality
    a (scope, id, outcome, version, sum, long_id, place)
  join {prefix}scopes s on s.number = a.scope
  order by a.scope, a.id, a.place
), known as materialized (
  select k.*, t.{id} is not null as done, t.{id} is null and k.old is not null and k.outcome = 1 as missing
  from asked k left join {table} t on {same}
), written as (
  insert into {prefix}markers (scope, id, outcome, version, sum, long_id, at)
  select k.scope, k.id, case when k.done then 1 else k.outcome end, case when k.done then 0 else k.version end,
    case when not k.done then k.sum end, k.long_id, clock_timestamp()
  from known k order by k.scope, k.id
  on conflict (scope, id) do nothing
  returning scope, id
), adopted as (
  insert into {table} as t ({columns})
  select {values} from written w join known k on k.scope = w.scope and k.id = w.id
  where k.missing
  order by k.scope, k.id
  on conflict ({key}) do nothing
  returning {judges}
)
select w.scope, w.id
from written w join known k on k.scope = w.scope and k.id = w.id
where not k.done and (not k.missing or {judged} operator(pg_catalog.=) any (select * from adopted))
union all
select null, null from settings where set_config('lock_timeout', $9, true) is null;

-- name: mark
with asked as (
  select distinct on (a.scope, a.id) a.scope, a.id, a.outcome, a.version, a.sum, a.long_id, {origin} as origin, {old} as old
  from unnest($1::bigint[], $2::bytea[], $3::smallint[], $4::smallint[], $5::bytea[], $6::bytea[]) with ordinality
    a (scope, id, outcome, version, sum, long_id, place)
  join {prefix}scopes s on s.number = a.scope
  order by a.scope, a.id, a.place
), known as materialized (
  select k.*, t.{id} is not null as done, t.{id} is null and k.old is not null and k.outcome = 1 as missing
  from asked k left join {table} t on {same}
), written as (
  insert into {prefix}markers (scope, id, outcome, version, sum, long_id, at)
  select k.scope, k.id, case when k.done then 1 else k.outcome end, case when k.done then 0 else k.version end,
    case when not k.done then k.sum end, k.long_id, clock_timestamp()
  from known k order by k.scope, k.id
  on conflict (scope, id) do nothing
  returning scope, id
), adopted as (
  insert into {table} as t ({columns})
  select {values} from written w join known k on k.scope = w.scope and k.id = w.id
  where k.missing
  order by k.scope, k.id
  on conflict ({key}) do nothing
  returning {judges}
)
select w.scope, w.id
from written w join known k on k.scope = w.scope and k.id = w.id
where not k.done and (not k.missing or {judged} operator(pg_catalog.=) any (select * from adopted));

-- Judge checks that each marker of this transaction with the outcome applied has a row in the
-- user's table, written by this store or by other code. If the row is missing, something such as a
-- trigger has prevented the write. Without this check, the message would be treated as a duplicate.

-- name: judge
with a as (
  select k.number, k.scope, k.id, k.conflict, m.outcome, m.version, m.sum, m.long_id, m.xmin = pg_current_xact_id()::xid as own
  from unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[]) k (number, scope, id, conflict)
  join {prefix}markers m on m.scope = k.scope and m.id = k.id
  where k.number between 0 and 1000000
), asked as (
  select a.*, {origin} as origin, {old} as old from a join {prefix}scopes s on s.number = a.scope
)
select k.number, k.outcome, k.version, k.sum, exists (
  select 1 from {prefix}inbox i where i.scope = k.scope and i.id = k.id and i.conflict = k.conflict)
from asked k
where not k.own or k.old is null or k.outcome <> 1 or exists (select 1 from {table} t where {same});

-- name: trim
with a as (
  delete from {prefix}markers m using unnest($1::bigint[], $2::bytea[]) a (scope, id)
  where m.scope = a.scope and m.id = a.id
  returning m.scope, m.id, m.long_id
), asked as (
  select {origin} as origin, {old} as old from a join {prefix}scopes s on s.number = a.scope
)
delete from {table} t using asked k where {same} and t.xmin = pg_current_xact_id()::xid;

-- name: outcome
with a as (
  update {prefix}markers set outcome = $1 where scope = $2 and id = $3
  returning scope, id, long_id, outcome
), asked as (
  select a.outcome, {origin} as origin, {old} as old from a join {prefix}scopes s on s.number = a.scope
)
delete from {table} t using asked k where k.outcome <> 1 and {same} and t.xmin = pg_current_xact_id()::xid;

-- name: look
with a as (
  select c.k, i.scope, i.id, i.long_id
  from jsonb_to_recordset($1::text::jsonb) c (k bigint, n bigint, t bigint)
  join {prefix}inbox i on i.number = c.n
  join {prefix}markers m on m.scope = i.scope and m.id = i.id
  where c.k between 0 and 1000000 and c.n > 0 and i.token = c.t and (i.state = 'IN_PROGRESS') is true and i.locked_until > clock_timestamp() and {owned}
), asked as (
  select a.k, {origin} as origin, {old} as old from a join {prefix}scopes s on s.number = a.scope
)
select k.k, exists (select 1 from {table} t where {same}) from asked k;

-- name: close claims
with given as materialized (
  select * from jsonb_to_recordset($1::text::jsonb)
    c (k bigint, n bigint, t bigint, state text, outcome smallint, after bigint, reason text, error text, ran bigint, taken bigint, stream text, place bigint)
  where c.k between 0 and 1000000 and c.n > 0
), held as (
  select i.number, i.scope, i.id, i.long_id, g.k, g.state, g.outcome, g.after, g.reason, g.error, g.ran, g.taken, g.stream, g.place
  from {prefix}inbox i join given g on g.n = i.number
  join {prefix}markers m on m.scope = i.scope and m.id = i.id
  where i.token = g.t and (i.state = 'IN_PROGRESS') is true and {owned}
  order by i.number for update of i, m
), ended as (
  update {prefix}inbox i
  set {row ends}
  from held h where i.number = h.number
  returning 1
), marked as (
  update {prefix}markers m set outcome = h.outcome, at = clock_timestamp()
  from held h where m.scope = h.scope and m.id = h.id
  returning 1
), a as (
  select scope, id, long_id from held where outcome = 1 and ran = 1
), asked as (
  select a.*, {origin} as origin, {old} as old from a join {prefix}scopes s on s.number = a.scope
), adopted as (
  insert into {table} ({columns})
  select {values} from asked k where k.old is not null
  on conflict ({key}) do nothing
  returning 1
)
select {prefix}stand(
  least((select count(*) from ended), (select count(*) from marked)) - (select count(*) from asked where old is not null) + (select count(*) from adopted),
  (select count(*) from given));
