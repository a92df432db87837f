-- Statements that move markers of a consumer from the table of all into its table of days
-- while its processes work.
--
-- The name of its table, {markers}, is the switch. While it moves, it is a view of the table
-- of all, and the marks of what is kept in dated take in every id, so that the statements of
-- a table of days do just what those of the table of all do: processes of before and of
-- after mark in one place. The table itself fills beside that, as {markers}_days. The end
-- drops the view, which waits for all who have marked by its name, copies what is left, and
-- gives the table the name. Who waited finds the table by it, also with a statement that
-- was prepared.

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

-- Running is the first number of transactions that have not begun to write, and what a
-- marker's time is at least if one of those writes it: a marker has its time just before
-- its transaction has its number. In microseconds since 1970.

-- name: running
select pg_snapshot_xmax(pg_current_snapshot())::text::bigint, (extract(epoch from clock_timestamp() - interval '10 seconds') * 1000000)::bigint;

-- name: ended
select pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= $1::bigint;

-- name: scopes of
select number from {prefix}scopes where consumer = $1 order by number;

-- By time is an index by which the copies find what was written last. It stands while a move
-- ends.

-- name: by time
create index concurrently {name}_by_time on {prefix}markers (scope, at);

-- name: no more by time
drop index concurrently if exists {markers}_by_time;

-- Copy counts those, too, whose ids fit the kind in another spelling than that which is
-- stored, since their copies would be fresh.

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

-- Settle has what had not ended be as it is now, since an act of a person may leave a
-- marker's time as it was. One that is there no more has ended, and been removed.

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

-- End moving has the consumer be looked for under its name, and notes that markers of it are
-- left in the table of all, of which nobody reads any more.

-- name: end moving
with left_there as (
  insert into {prefix}dated (consumer, kind, low_day, high_day, low, high)
  values ('\x02'::bytea || $1::bytea, '{kind}', '9000-01-01', '9000-01-01', '\x', '\x')
)
update {prefix}dated set consumer = $1::bytea, low_day = to_date($2, 'YYYYMMDD'), high_day = $3::text::date, low = $4, high = $5
where number = {number} and consumer = '\x01'::bytea || $1::bytea;

-- What follows it.

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
