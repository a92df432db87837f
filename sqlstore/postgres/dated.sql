-- Statements of a store whose markers are in a table of a single consumer. The table has a
-- partition for each day, by the time in the ids. {markers} is the name of the table, and the table
-- dated has its low and high marks.
--
-- The table accepts no id outside the marks, because the partition of that day may be dropped, or
-- not created yet. Some markers must be written all the same, for example of a parked message. They
-- are written aside: into a separate partition, under the id with a first byte that no other id
-- has, so that dropping a day does not remove them. If an identity has a marker in one of the two
-- places, the store writes none in the other place.

-- name: begin
with settings as materialized (
  select set_config('idle_in_transaction_session_timeout', $7, true), set_config('lock_timeout', $8, true),
    set_config('statement_timeout', case
      when $10::text = '0' or current_setting('statement_timeout')::interval between '1ms' and $10::text::interval
      then current_setting('statement_timeout') else $10::text end, true)
), guarded as (
  insert into {prefix}guard (number) select pg_current_xact_id()::text::bigint from settings
), written as (
  insert into {markers} (scope, id, outcome, version, sum, long_id, at)
  select a.scope, a.id, a.outcome, a.version, a.sum, a.long_id, clock_timestamp()
  from settings cross join {prefix}dated d
  cross join unnest($1::bigint[], $2::bytea[], $3::smallint[], $4::smallint[], $5::bytea[], $6::bytea[])
    a (scope, id, outcome, version, sum, long_id)
  where d.number = {number} and a.id >= d.low and a.id < d.high
    and not exists (select 1 from {markers}_aside m where m.scope = a.scope and m.id = '\x05'::bytea || a.id)
  order by a.scope, a.id
  on conflict (scope, id) do nothing
  returning scope, id
)
select scope, id from written
union all
select null, null from settings where set_config('lock_timeout', $9, true) is null;

-- name: mark
insert into {markers} (scope, id, outcome, version, sum, long_id, at)
select a.scope, a.id, a.outcome, a.version, a.sum, a.long_id, clock_timestamp()
from {prefix}dated d
cross join unnest($1::bigint[], $2::bytea[], $3::smallint[], $4::smallint[], $5::bytea[], $6::bytea[])
  a (scope, id, outcome, version, sum, long_id)
where d.number = {number} and a.id >= d.low and a.id < d.high
  and not exists (select 1 from {markers}_aside m where m.scope = a.scope and m.id = '\x05'::bytea || a.id)
order by a.scope, a.id
on conflict (scope, id) do nothing
returning scope, id;

-- Aside writes markers whose ids are outside the marks. Only markers that do not decide whether a
-- handler runs are written aside.

-- name: aside
insert into {markers} (scope, id, outcome, version, sum, long_id, at)
select a.scope, '\x05'::bytea || a.id, a.outcome, a.version, a.sum, a.long_id, clock_timestamp()
from {prefix}dated d
cross join unnest($1::bigint[], $2::bytea[], $3::smallint[], $4::smallint[], $5::bytea[], $6::bytea[])
  a (scope, id, outcome, version, sum, long_id)
where d.number = {number} and (a.id < d.low or a.id >= d.high)
  and not exists (select 1 from {markers} m where m.scope = a.scope and m.id = a.id)
order by a.scope, a.id
on conflict (scope, id) do nothing
returning scope, substr(id, 2);

-- If an id outside the marks has no marker, judge returns a negative number instead of an outcome:
-- -1 for an id below the low mark, -2 for an id above the high mark, or -3 if the id is above the
-- high mark and the partition after today does not exist. For a marker that was written aside,
-- judge adds 256 to the outcome.

-- name: judge
select a.number,
  case when m.id is not null then m.outcome + m.aside when a.id < d.low then -1
    when d.high_day > (statement_timestamp() at time zone 'UTC')::date + 1 then -2 else -3 end,
  coalesce(m.version, 0), m.sum, exists (
    select 1 from {prefix}inbox i where i.scope = a.scope and i.id = m.id and i.conflict = a.conflict)
from unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[]) a (number, scope, id, conflict)
join {prefix}dated d on d.number = {number}
left join lateral (
  select m.id, m.outcome, m.version, m.sum, 0 as aside from {markers} m where m.scope = a.scope and m.id = a.id
  union all
  select m.id, m.outcome, m.version, m.sum, 256 from {markers}_aside m where m.scope = a.scope and m.id = '\x05'::bytea || a.id
  limit 1
) m on true
where m.id is not null or a.id < d.low or a.id >= d.high;

-- Look also reports a claim as done if the message has taken effect under the other of its two ids,
-- with or without the first byte.

-- name: look
select c.k, case get_byte(i.id, 0)
  when 5 then exists (select 1 from {markers} o where o.scope = i.scope and o.id = substr(i.id, 2) and o.outcome = 1)
  else exists (select 1 from {markers}_aside o where o.scope = i.scope and o.id = '\x05'::bytea || i.id and o.outcome = 1) end
from jsonb_to_recordset($1::text::jsonb) c (k bigint, n bigint, t bigint)
join {prefix}inbox i on i.number = c.n
join {markers} m on m.scope = i.scope and m.id = i.id
where c.k >= 0 and c.n > 0 and i.token = c.t and (i.state = 'IN_PROGRESS') is true and i.locked_until > clock_timestamp() and {owned};

-- name: marker
select m.outcome, (extract(epoch from m.at) * 1000)::bigint, m.version, m.sum from {prefix}scopes s join {markers} m on m.scope = s.number
where s.consumer = $1 and s.source = $2 and m.id in ($3::bytea, '\x05'::bytea || $3::bytea) order by s.generation desc, m.id limit 1;

-- name: known markers
select s.source, s.generation, m.outcome, (extract(epoch from m.at) * 1000)::bigint, m.version, m.sum,
  (exists (select 1 from {prefix}results r where r.scope = m.scope and r.id = m.id))::int
from {prefix}scopes s join {markers} m on m.scope = s.number and m.id in ($2::bytea, '\x05'::bytea || $2::bytea)
where s.consumer = $1 order by s.source, s.generation, m.id limit 1000;

-- First due returns the first day that must be dropped and still exists.

-- name: first due
select (extract(epoch from min(to_date(right(c.relname, 8), 'YYYYMMDD'))) * 1000000)::bigint
from {prefix}dated d join pg_inherits h on h.inhparent = to_regclass('{markers}') join pg_class c on c.oid = h.inhrelid
where d.consumer = $1 and c.relname::text ~ '_[0-9]{8}$'
  and to_date(right(c.relname, 8), 'YYYYMMDD') < ((timestamptz 'epoch' + $2::bigint * interval '1 microsecond') at time zone 'UTC')::date;

-- Marker days returns the number of days that exist, the first of them, and the number of days
-- before a given time.

-- name: marker days
select count(*), (extract(epoch from min(k.day)) * 1000000)::bigint,
  count(*) filter (where k.day < ((timestamptz 'epoch' + $1::bigint * interval '1 microsecond') at time zone 'UTC')::date)
from pg_inherits h join pg_class c on c.oid = h.inhrelid
cross join lateral (select to_date(right(c.relname, 8), 'YYYYMMDD') as day) k
where h.inhparent = to_regclass('{markers}') and c.relname::text ~ '_[0-9]{8}$';

-- name: last day
select count(*) from (
  select 1 from {prefix}dated d join {prefix}scopes s on s.consumer = d.consumer join {markers} m on m.scope = s.number
  where d.consumer = $1 and m.id >= {prefix}day_bound('{kind}', (statement_timestamp() at time zone 'UTC')::date - 1)
    and m.id < d.high and m.at > clock_timestamp() - interval '1 day' limit $2
) counted;

-- name: marker bytes
select coalesce((sum(pg_total_relation_size(c.oid))::float8 / nullif(sum(c.reltuples)::float8, 0::float8)), 0)::bigint
from pg_inherits h join pg_class c on c.oid = h.inhrelid
where h.inhparent = to_regclass('{markers}') and c.reltuples > 0::float4 having sum(c.reltuples) >= 1000::float4;

-- Reap is like reap in retention.sql, for the markers that were written aside. These markers are
-- removed one by one, when their ids can no longer be inside the marks.

-- name: reap
with {part}, free as materialized (
  select f.place from part p cross join lateral (
    select m.ctid as place from {markers}_aside m
    where m.ctid = p.place and m.outcome in (1, 4, 5)
      and exists (
        select 1 from {prefix}dated d where d.number = {number} and (substr(m.id, 2) < d.low or substr(m.id, 2) >= '{ceiling}'::bytea))
      and (select count(*) from {prefix}inbox i where i.scope = p.scope and i.id = p.id) = 0
    limit 1 for update of m skip locked) f
), gone as (
  delete from {markers}_aside m using free f where m.ctid = f.place returning m.scope, m.id
), results as (
  delete from {prefix}results r using gone g where r.scope = g.scope and r.id = substr(g.id, 2)
)
select (select count(*) from part), (select count(*) from gone), (
  select p.place::text from part p where (select count(*) from part) = $4 order by p.place desc limit 1);

-- Reap ended removes rows of days below the low mark if the messages have ended, but not recently.

-- name: reap ended
with due as materialized (
  select i.number from {prefix}dated d join {prefix}scopes s on s.consumer = d.consumer
  cross join lateral (
    select i.number from {prefix}inbox i
    where i.scope = s.number and i.id < d.low and i.state in ('COMPLETED', 'DISCARDED', 'DEAD_LETTERED') and i.changed_at < s.low
    order by i.id limit $1 for update of i skip locked) i
  where d.number = {number} limit $1
)
delete from {prefix}inbox i using due d where i.number = d.number;

-- Reap results removes the results of messages of such days.

-- name: reap results
with due as materialized (
  select s.number, r.id from {prefix}dated d join {prefix}scopes s on s.consumer = d.consumer
  cross join lateral (
    select r.id from {prefix}results r where r.scope = s.number and r.id < d.low
    order by r.id limit $1 for update of r skip locked) r
  where d.number = {number} limit $1
)
delete from {prefix}results r using due d where r.scope = d.number and r.id = d.id;

-- Statements that create and change the table and its partitions.

-- name: create
create table {markers} (
  scope bigint not null,
  at timestamptz not null,
  outcome smallint not null constraint known_outcomes check (outcome between 1 and 5),
  version smallint not null,
  id bytea not null,
  sum bytea,
  long_id bytea,
  primary key (scope, id)
) partition by range (id);

create index {name}_unfinished on {markers} (scope, id) where outcome in (2, 3);

-- name: create aside
create table {markers}_aside partition of {markers} for values from ('\x05'::bytea) to ('\x06'::bytea);

-- name: create readable
create view {markers}_readable as
select
  {prefix}readable(s.consumer) as consumer,
  {prefix}readable(s.source) as source,
  s.generation,
  case get_byte(k.id, 0)
    when 0 then {prefix}readable(substr(k.id, 2))
    when 1 then encode(substr(k.id, 2), 'hex')::uuid::text
    else {prefix}readable(m.long_id)
  end as id,
  get_byte(m.id, 0) = 5 as aside,
  case m.outcome
    when 1 then 'applied'
    when 2 then 'waiting'
    when 3 then 'parked'
    when 4 then 'dead_lettered'
    when 5 then 'discarded'
  end as outcome,
  m.version as fingerprint_version,
  encode(m.sum, 'hex') as fingerprint,
  m.at
from {markers} m join {prefix}scopes s on s.number = m.scope
cross join lateral (select case get_byte(m.id, 0) when 5 then substr(m.id, 2) else m.id end as id) k;

-- Days returns the partitions with their bounds. It needs the statement hexadecimal earlier in the
-- transaction, so that the bounds are hexadecimal texts.

-- name: hexadecimal
select set_config('bytea_output', 'hex', true);

-- name: days
select c.oid::regclass::text, decode(b.bounds[1], 'hex'), decode(b.bounds[2], 'hex')
from pg_inherits h join pg_class c on c.oid = h.inhrelid
cross join lateral regexp_match(pg_get_expr(c.relpartbound, c.oid), '^FOR VALUES FROM \(''\\x([0-9a-f]*)''\) TO \(''\\x([0-9a-f]*)''\)$') b (bounds)
where h.inhparent = to_regclass('{markers}') and b.bounds is not null
order by 2;

-- Wanted returns the days to create: from the high mark to three days after today.

-- name: wanted
select to_char(w.day, 'YYYYMMDD'), {prefix}day_bound('{kind}', w.day::date), {prefix}day_bound('{kind}', w.day::date + 1), to_char(w.day + interval '1 day', 'YYYY-MM-DD')
from {prefix}dated d cross join lateral generate_series(
  d.high_day::timestamp, ((clock_timestamp() at time zone 'UTC')::date + 3)::timestamp, interval '1 day') w (day)
where d.number = {number} order by w.day;

-- name: keeping
select set_config('lock_timeout', '10s', true), set_config('bytea_output', 'hex', true), pg_advisory_xact_lock(hashtextextended('{markers} days', 0));

-- name: create day
create table {markers}_{day} (like {markers} including constraints including indexes);

-- name: attach day
alter table {markers} attach partition {markers}_{day} for values from ('{from}'::bytea) to ('{to}'::bytea);

-- name: raise high
update {prefix}dated set high_day = $1::text::date, high = $2 where number = {number} and high_day < $1::text::date;

-- name: raise low
update {prefix}dated d set low_day = least(w.day, d.high_day), low = {prefix}day_bound('{kind}', least(w.day, d.high_day))
from (select ((timestamptz 'epoch' + $1::bigint * interval '1 microsecond') at time zone 'UTC')::date as day) w
where d.number = {number} and d.low_day < least(w.day, d.high_day);

-- Below returns the low mark. Days that end at or below the low mark are dropped.

-- name: below
select low from {prefix}dated where number = {number};

-- name: impatience
select set_config('lock_timeout', '20ms', true), set_config('statement_timeout', '10s', true), set_config('bytea_output', 'hex', true),
  pg_try_advisory_xact_lock(hashtextextended('{markers} drop', 0));

-- name: lock table
lock table only {markers} in access exclusive mode;

-- Holds reports whether a day must be kept: a message of the day has not ended, or has ended
-- recently.

-- name: holds
select exists (
  select 1 from {prefix}dated d join {prefix}scopes s on s.consumer = d.consumer
  where d.number = {number} and (
    exists (select 1 from {prefix}inbox i where i.scope = s.number and i.id >= $1 and i.id < $2)
    or exists (select 1 from {markers} m where m.scope = s.number and m.id >= $1 and m.id < $2 and m.outcome in (2, 3))));

-- name: drop day
drop table {table};

-- Move moves the markers of a consumer out of the table that all consumers share. Markers outside
-- the days are written aside, and move rows changes the ids of their rows in the same way. Oddly
-- spelled counts the ids that have the right kind, but another spelling than the stored one.

-- name: move
with gone as (
  delete from {prefix}markers m using {prefix}scopes s where s.consumer = $1 and m.scope = s.number
  returning m.scope, m.at, m.outcome, m.version, m.id, m.sum, m.long_id
)
insert into {markers} (scope, at, outcome, version, id, sum, long_id)
select g.scope, g.at, g.outcome, g.version, case when g.id >= d.low and g.id < d.high then g.id else '\x05'::bytea || g.id end, g.sum, g.long_id
from gone g join {prefix}dated d on d.number = {number};

-- name: move rows
update {prefix}inbox i set id = '\x05'::bytea || i.id, revision = i.revision + 1
from {prefix}dated d, {prefix}scopes s
where d.number = {number} and s.consumer = $1 and i.scope = s.number and (i.id < d.low or i.id >= d.high) and get_byte(i.id, 0) <> 5;

-- name: oddly spelled
select count(*) from {prefix}scopes s join {prefix}markers m on m.scope = s.number
where s.consumer = $1 and get_byte(m.id, 0) = 0 and length(m.id) = case '{kind}' when 'ulid' then 27 else 37 end
  and encode(m.id, 'escape') ~ case '{kind}' when 'ulid' then '[a-z]' else '^.{4}[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-7' end;

-- The faults of the table. While a consumer is moved, or its old markers are removed, some
-- differences are not faults; see moving.sql.

-- name: lint
select what, remedy from (
  select '{markers} is missing' as what, 'restore it from a backup; without its rows everything that comes again takes effect again' as remedy
  where to_regclass('{markers}') is null
  union all
  select '{markers}_aside is missing', 'attach it again, or restore it from a backup'
  where to_regclass('{markers}') is not null and not exists (
    select 1 from pg_inherits where inhparent = to_regclass('{markers}') and inhrelid = to_regclass('{markers}_aside'))
  union all
  select t.relid::text || ' is not kept through a crash of the server: it is unlogged, and if the server crashed since, its rows are gone', 'alter table ' || t.relid::text || ' set logged'
  from pg_partition_tree(to_regclass('{markers}')) t join pg_class k on k.oid = t.relid::oid where k.relpersistence <> 'p'
  union all
  select t.relid::text || ' has the trigger ' || quote_ident(g.tgname) || ', which may change what is written there',
    'drop trigger ' || quote_ident(g.tgname) || ' on ' || t.relid::text
  from pg_partition_tree(to_regclass('{markers}')) t join pg_trigger g on g.tgrelid = t.relid::oid
  where not g.tgisinternal and g.tgenabled in ('O', 'A')
  union all
  select t.relid::text || ' has no primary key (scope, id)', 'alter table ' || t.relid::text || ' add primary key (scope, id)'
  from pg_partition_tree(to_regclass('{markers}')) t
  where not exists (select 1 from pg_index x where x.indrelid = t.relid::oid and x.indisprimary and x.indisvalid and array['scope', 'id'] operator(pg_catalog.=) array(
    select a.attname::text from unnest(x.indkey) with ordinality k (n, i) join pg_attribute a on a.attrelid = x.indrelid and a.attnum = k.n order by k.i))
  union all
  select '{markers} has no partition for ' || to_char(w.day, 'YYYY-MM-DD') || ', whose ids are kept', 'attach it again as {markers}_' || to_char(w.day, 'YYYYMMDD') || ', or restore it from a backup'
  from {prefix}dated d
  cross join lateral generate_series(d.low_day::timestamp, d.high_day::timestamp - interval '1 day', interval '1 day') w (day)
  where d.number = {number} and to_regclass('{markers}') is not null and current_setting('bytea_output') = 'hex' and not exists (
    select 1 from pg_inherits h join pg_class c on c.oid = h.inhrelid
    cross join lateral regexp_match(pg_get_expr(c.relpartbound, c.oid), '^FOR VALUES FROM \(''\\x([0-9a-f]*)''\) TO \(''\\x([0-9a-f]*)''\)$') b (bounds)
    where h.inhparent = to_regclass('{markers}') and decode(b.bounds[1], 'hex') <= {prefix}day_bound('{kind}', w.day::date)
      and decode(b.bounds[2], 'hex') >= {prefix}day_bound('{kind}', w.day::date + 1))
  union all
  select '{markers} has the default partition ' || p.partdefid::regclass::text || ', in which rows outlive their day', 'detach it'
  from pg_partitioned_table p where p.partrelid = to_regclass('{markers}') and p.partdefid <> 0::oid
  union all
  select 'the markers of consumer ' || {prefix}readable(d.consumer) || ' lie in {prefix}markers, too, where nobody looks for them',
    'stop its processes and move them as docs/operate/daily-partitions.md shows'
  from {prefix}dated d where d.number = {number} and exists (
    select 1 from {prefix}scopes s join {prefix}markers m on m.scope = s.number where s.consumer = d.consumer)
    and not exists (select 1 from {prefix}dated l where l.consumer = '\x02'::bytea || d.consumer)
) faults
where not exists (select 1 from {prefix}dated d where d.number = {number} and get_byte(d.consumer, 0) = 1);
