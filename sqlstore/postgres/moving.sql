-- Statements that move the markers of a consumer from the shared table to the consumer's own table
-- with daily partitions, while the processes of the consumer run.
--
-- The name {markers} of the new table is the switch. During the move, {markers} is a view of the
-- shared table, and the range in the table dated includes every id. The statements in dated.sql
-- then do exactly what the statements for the shared table do, so processes that started before the
-- move and processes that started after it write their markers to one place. Meanwhile, the markers
-- are copied to the new table, which has the name {markers}_days.
--
-- The last transaction of the move drops the view, copies the remaining markers, and renames the
-- table to {markers}. Dropping the view waits for all transactions that have written markers
-- through it. A transaction that waited finds the table under the name, also with a prepared
-- statement.

-- name: new moving
insert into {prefix}dated (consumer, kind, low_day, high_day, low, high)
values ('\x01'::bytea || $1::bytea, $2, '9000-01-01', '9000-01-01', '\x', '\x05') returning number;

-- name: stand in
create table {markers}_aside (like {markers}_days including constraints including indexes);

create view {markers} as select scope, at, outcome, version, id, sum, long_id from {prefix}markers;

-- name: days from
select to_char(w.day, 'YYYYMMDD'), {prefix}day_bound('{kind}', w.day::date), {prefix}day_bound('{kind}', w.day::date + 1), to_char(w.day + interval '1 day', 'YYYY-MM-DD')
from generate_series(coalesce(to_date(nullif($1::text, ''), 'YYYYMMDD'), (clock_timestamp() at time zone 'UTC')::date - $2::int)::timestamp,
  ((clock_timestamp() at time zone 'UTC')::date + 3)::timestamp, interval '1 day') w (day)
order by w.day;

-- Running returns the first transaction number that no writing transaction has yet. It also returns
-- a lower bound for the times of markers that such transactions write, in microseconds since 1970.
-- The bound is needed because a marker gets its time shortly before its transaction gets its
-- number.

-- name: running
select pg_snapshot_xmax(pg_current_snapshot())::text::bigint, (extract(epoch from clock_timestamp() - interval '10 seconds') * 1000000)::bigint;

-- name: ended
select pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= $1::bigint;

-- name: scopes of
select number from {prefix}scopes where consumer = $1 order by number;

-- By time is an index with which the copies find the markers that were written last. The index
-- exists only while a move ends.

-- name: by time
create index concurrently {name}_by_time on {prefix}markers (scope, at);

-- name: no more by time
drop index concurrently if exists {markers}_by_time;

-- Copy also counts the ids that have the right kind, but another spelling than the stored one.
-- After the move, a duplicate with such an id would be treated as new.

-- name: copy
with part as materialized (
  select m.scope, m.at, m.outcome, m.version, m.id, m.sum, m.long_id from {prefix}markers m
  where m.scope = $1 and m.at >= timestamptz 'epoch' + $2::bigint * interval '1 microsecond'
    and (m.at, m.id) > (timestamptz 'epoch' + $2::bigint * interval '1 microsecond', $3::bytea)
  order by m.at, m.id limit $4
), copied as (
  insert into {markers}_days as d (scope, at, outcome, version, id, sum, long_id)
  select p.scope, p.at, p.outcome, p.version, p.id, p.sum, p.long_id from part p where p.id >= $5 and p.id < $6 order by p.scope, p.id
  on conflict (scope, id) do update set at = excluded.at, outcome = excluded.outcome, version = excluded.version, sum = excluded.sum, long_id = excluded.long_id
  where (d.at, d.outcome) is distinct from (excluded.at, excluded.outcome)
  returning 1
)
select (select count(*) from part), (select count(*) from copied), (
  select count(*) from part p where get_byte(p.id, 0) = 0 and length(p.id) = case '{kind}' when 'ulid' then 27 else 37 end
    and encode(p.id, 'escape') ~ case '{kind}' when 'ulid' then '[a-z]' else '^.{4}[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-7' end), l.at, l.id
from (select 1) one left join (
  select (extract(epoch from at) * 1000000)::bigint as at, id from part order by part.at desc, id desc limit 1) l on true;

-- The end of a move, in one transaction.

-- name: hold off
drop view {markers};

-- name: copy outside
insert into {markers}_aside (scope, at, outcome, version, id, sum, long_id)
select m.scope, m.at, m.outcome, m.version, '\x05'::bytea || m.id, m.sum, m.long_id
from {prefix}scopes s join {prefix}markers m on m.scope = s.number
where s.consumer = $1 and (m.id < $2 or m.id >= $3)
on conflict (scope, id) do nothing;

-- Settle updates the copies of markers that were not final when they were copied, because an
-- operator's change can leave the time of a marker unchanged. If the original of such a marker does
-- not exist any more, its message has ended and the marker was removed, so settle removes the copy.

-- name: settle
with unfinished as (
  select d.scope, d.id from {prefix}scopes s join {markers}_days d on d.scope = s.number where s.consumer = $1 and d.outcome in (2, 3)
), gone as (
  delete from {markers}_days d using unfinished u
  where d.scope = u.scope and d.id = u.id and not exists (select 1 from {prefix}markers m where m.scope = u.scope and m.id = u.id)
)
update {markers}_days d set outcome = m.outcome, at = m.at, version = m.version, sum = m.sum
from unfinished u join {prefix}markers m on m.scope = u.scope and m.id = u.id
where d.scope = u.scope and d.id = u.id and (d.outcome, d.version, d.sum) is distinct from (m.outcome, m.version, m.sum);

-- name: take name
alter table {markers}_days rename to {name};

alter table {markers} attach partition {markers}_aside for values from ('\x05'::bytea) to ('\x06'::bytea);

-- name: rename day
alter table {day} rename to {name}_{date};

-- End moving stores the new table under the consumer's name, so that processes find it. It also
-- records that the shared table still has markers of the consumer, which no process reads any more.

-- name: end moving
with left_there as (
  insert into {prefix}dated (consumer, kind, low_day, high_day, low, high)
  values ('\x02'::bytea || $1::bytea, '{kind}', '9000-01-01', '9000-01-01', '\x', '\x')
)
update {prefix}dated set consumer = $1::bytea, low_day = to_date($2, 'YYYYMMDD'), high_day = $3::text::date, low = $4, high = $5
where number = {number} and consumer = '\x01'::bytea || $1::bytea;

-- Statements that run after the end of a move.

-- name: impatient
select set_config('lock_timeout', $1, true), set_config('bytea_output', 'hex', true);

-- name: fence
alter table {prefix}markers add constraint {name}_moved check (scope <> all ('{list}'::bigint[])) not valid;

-- name: fenced
select exists (select 1 from pg_constraint where conrelid = to_regclass('{prefix}markers') and conname = '{name}_moved');

-- name: left
select exists (select 1 from {prefix}dated where consumer = '\x02'::bytea || $1::bytea);

-- name: clear
with part as (
  select m.id from {prefix}markers m where m.scope = $1 order by m.id limit $2 for update
), gone as (
  delete from {prefix}markers m using part p where m.scope = $1 and m.id = p.id returning 1
)
select (select count(*) from part), (select count(*) from gone);

-- name: cleared
delete from {prefix}dated where consumer = '\x02'::bytea || $1::bytea;
