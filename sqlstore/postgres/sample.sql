-- Statements for monitoring, which run every few seconds. Each of them reads a limited amount: the
-- counts of rows use the index on states and a maximum number of rows, and the counts for tables
-- use the estimates of the server. Ages are in microseconds.

-- name: sample limit
select set_config('statement_timeout', '50', true);

-- name: sample rows
select s.consumer, count(*),
  coalesce((extract(epoch from clock_timestamp() - min(i.received_at)) * 1000000)::bigint, 0),
  (extract(epoch from clock_timestamp() - min(i.received_at) filter (where i.reason = 'gap')) * 1000000)::bigint,
  count(*) filter (where i.reason = 'suppressed')
from (select scope, received_at, reason from {prefix}inbox where state = $1 order by due_at limit 10001) i
join {prefix}scopes s on s.number = i.scope group by s.consumer;

-- A consumer that keeps everything forever records no progress, and has nothing to remove.
-- name: sample reaping
select consumer, (extract(epoch from clock_timestamp() - progress_at) * 1000000)::bigint,
  case when not off then
    (extract(epoch from clock_timestamp() - walked_to) * 1000000)::bigint - keep_ms * 1000 end
from {prefix}retention where keep_ms > 0;

-- name: sample replays
select consumer, count(*) from {prefix}replays where ended_at is null group by consumer;

-- name: sample tables
-- Markers may lie in tables of their own, by day. The server analyzes their partitions, and
-- never by itself what they are partitions of.
with tables as (
  select 'markers' as name, to_regclass('{prefix}markers')::oid as oid
  union all
  select 'inbox', to_regclass('{prefix}inbox')::oid
  union all
  select 'markers', to_regclass('{prefix}markers_' || d.number::text)::oid from {prefix}dated d
)
select p.name, sum(greatest(c.reltuples, 0))::bigint, sum(coalesce(pg_stat_get_dead_tuples(c.oid), 0))::bigint
from (
  select t.name, t.oid from tables t
  union all
  select t.name, i.inhrelid from tables t join pg_inherits i on i.inhparent = t.oid
) p join pg_class c on c.oid = p.oid
where c.relkind = 'r'
group by p.name;

-- name: sample outcomes
with tables as (
  select to_regclass('{prefix}markers')::oid as oid
  union all
  select to_regclass('{prefix}markers_' || d.number::text)::oid from {prefix}dated d
)
select v.outcome, sum(v.share * greatest(c.reltuples, 0))::bigint
from (
  select t.oid from tables t
  union all
  select i.inhrelid from tables t join pg_inherits i on i.inhparent = t.oid
) p join pg_class c on c.oid = p.oid
join pg_namespace n on n.oid = c.relnamespace
join pg_stats s on s.schemaname = n.nspname and s.tablename = c.relname and s.attname = 'outcome' and not s.inherited,
unnest(s.most_common_vals::text::smallint[], s.most_common_freqs) v (outcome, share)
where c.relkind = 'r'
group by v.outcome;
