-- Streams are locked one by one, because SQLite has only one writer.

-- name: know stream
insert into {prefix}streams (scope, name, last, version, changed_at)
values (?, ?, ?, 0, cast(unixepoch('subsec') * 1000 as integer))
on conflict (scope, name) do nothing;

-- name: begin stream
insert into {prefix}streams (scope, name, last, version, changed_at)
values (?, ?, ?, 0, cast(unixepoch('subsec') * 1000 as integer))
on conflict (scope, name) do update set last = excluded.last, changed_at = excluded.changed_at where last = -1;

-- name: take stream
select last, version, sum from {prefix}streams where scope = ? and name = ?;

-- name: move stream
update {prefix}streams set last = ?, version = ?, sum = ?, changed_at = cast(unixepoch('subsec') * 1000 as integer)
where scope = ? and name = ?;

-- name: free markers
update {prefix}markers set outcome = 2, at = cast(unixepoch('subsec') * 1000 as integer)
where scope = ?1 and outcome = 3 and id in (
  select i.id from {prefix}inbox i indexed by {prefix}inbox_blocked
  where i.scope = ?1 and i.stream = ?2 and i.stream is not null and i.stream_version <= ?3 + 1
    and i.state in ('BLOCKED', 'PARKED') and i.state = 'PARKED' and i.reason = 'gap'
    and i.version = {prefix}markers.version and i.sum is {prefix}markers.sum
    and (length(i.conflict) = 0 or not exists (select 1 from {prefix}inbox o where o.scope = i.scope and o.id = i.id
      and o.conflict = x'' and o.state = 'PARKED' and o.version = i.version and o.sum is i.sum)));

-- Free rows does not free a row that was parked because of a gap if its marker belongs to another
-- row of the identity. Such a row stays parked, as a conflict (law 16). If two rows have the
-- content of the marker, the row that waits owns the marker, and otherwise the first row.

-- name: free rows
update {prefix}inbox set (state, reason, due_at) = (
    select case when {prefix}inbox.state = 'BLOCKED' or o.owns then 'RECEIVED' else 'PARKED' end,
      case when {prefix}inbox.state = 'BLOCKED' or o.owns then '' else 'conflict' end,
      case when {prefix}inbox.state = 'BLOCKED' or o.owns then cast(unixepoch('subsec') * 1000 as integer) end
    from (select exists (select 1 from {prefix}markers k where k.scope = {prefix}inbox.scope and k.id = {prefix}inbox.id
      and k.outcome = 2 and k.version = {prefix}inbox.version and k.sum is {prefix}inbox.sum)
      and not exists (select 1 from {prefix}inbox t where t.scope = {prefix}inbox.scope and t.id = {prefix}inbox.id
        and t.number <> {prefix}inbox.number and t.version = {prefix}inbox.version and t.sum is {prefix}inbox.sum
        and (t.state in ('RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'BLOCKED')
          or t.state = 'PARKED' and length({prefix}inbox.conflict) > 0)) as owns) o),
  revision = revision + 1, changed_at = cast(unixepoch('subsec') * 1000 as integer), processed_at = null, token = null, locked_until = null
where scope = ?1 and stream = ?2 and stream is not null and stream_version <= ?3 + 1
  and state in ('BLOCKED', 'PARKED') and (state = 'BLOCKED' or reason = 'gap');

-- name: stream
select last from {prefix}streams t join {prefix}scopes s on s.number = t.scope
where s.consumer = ? and s.source = ? and s.generation = ? and t.name = ?;

-- name: streams
with blocked as (
  select i.scope, i.stream, count(*) as waiting, min(i.stream_version) as first, min(i.received_at) as oldest
  from {prefix}inbox i
  where i.state in ('BLOCKED', 'PARKED') and i.stream is not null and (i.state = 'BLOCKED' or i.reason = 'gap')
    and (?2 is null or i.stream = ?2)
  group by i.scope, i.stream
)
select s.consumer, s.source, s.generation, t.name, t.last, coalesce(b.waiting, 0), coalesce(b.first, 0), coalesce((
  select i.number from {prefix}inbox i
  where i.scope = t.scope and i.stream = t.name and i.stream_version = b.first
    and i.state in ('BLOCKED', 'PARKED') and (i.state = 'BLOCKED' or i.reason = 'gap')
  order by i.number limit 1), 0), b.oldest
from {prefix}streams t join {prefix}scopes s on s.number = t.scope
left join blocked b on b.scope = t.scope and b.stream = t.name
where (?1 is null or s.consumer = ?1) and (?2 is null or t.name = ?2) and (not ?3 or b.waiting > 0)
order by s.consumer, s.source, s.generation, t.name limit ?4;
