-- The arguments and results of the statements are in microseconds since 1970. The tables have
-- milliseconds.

-- name: retain
insert into {prefix}retention (consumer, keep_ms, bodies_ms, horizon_ms, why, off, progress_at)
values (?, ?, ?, ?, ?, ?, cast(unixepoch('subsec') * 1000 as integer))
on conflict (consumer) do update set keep_ms = excluded.keep_ms, bodies_ms = excluded.bodies_ms,
  horizon_ms = excluded.horizon_ms, why = excluded.why, off = excluded.off;

-- name: reap policy
select keep_ms, bodies_ms, horizon_ms, why, off, null, null from {prefix}retention where consumer = ?;

-- name: progress
update {prefix}retention set progress_at = cast(unixepoch('subsec') * 1000 as integer) where consumer = ?;

-- name: age
insert into {prefix}ages (consumer, lane, oldest, at)
values (?, ?, ? / 1000, cast(unixepoch('subsec') * 1000 as integer))
on conflict (consumer, lane) do update set oldest = excluded.oldest, at = excluded.at;

-- name: forget age
delete from {prefix}ages where consumer = ? and lane = ?;

-- Cutoff is the time before which the records of a consumer may be removed.

-- name: cutoff
min(cast(unixepoch('subsec') * 1000 as integer), r.progress_at,
  coalesce((select min(coalesce(a.oldest, a.at)) from {prefix}ages a where a.consumer = r.consumer), r.progress_at)) - r.keep_ms

-- name: retentions
select r.consumer, r.keep_ms, r.bodies_ms, r.horizon_ms, r.why, r.off, r.progress_at * 1000,
  coalesce((select a.lane from {prefix}ages a
    where a.consumer = r.consumer and coalesce(a.oldest, a.at) < r.progress_at - 300000
    order by coalesce(a.oldest, a.at), a.lane limit 1), ''),
  (select min(coalesce(a.oldest, a.at)) * 1000 from {prefix}ages a
    where a.consumer = r.consumer and coalesce(a.oldest, a.at) < r.progress_at - 300000),
  case when r.keep_ms > 0 then ({cutoff}) * 1000 end,
  (select max(s.low) * 1000 from {prefix}scopes s where s.consumer = r.consumer)
from {prefix}retention r
where ?1 is null or r.consumer = ?1 order by r.consumer;

-- First due returns the time of the oldest marker that may be removed.

-- name: first due
select min((
  select m.at * 1000 from {prefix}markers m
  where m.scope = s.number and m.at < ?2 / 1000 and m.outcome in (1, 4, 5)
    and not exists (
      select 1 from {prefix}inbox i where i.scope = m.scope and i.id = m.id
      and not (i.state in ('COMPLETED', 'DISCARDED', 'DEAD_LETTERED') and i.changed_at < ?2 / 1000))
  order by m.at limit 1
)) from {prefix}scopes s where s.consumer = ?1;

-- name: last day
select count(*) from (
  select 1 from {prefix}scopes s join {prefix}markers m on m.scope = s.number
  where s.consumer = ?1 and m.at > cast(unixepoch('subsec') * 1000 as integer) - 86400000 limit ?2
);

-- name: marker bytes
select 0 where 0;

-- name: removed
select max(s.low) * 1000 from {prefix}scopes s where s.consumer = ?1;

-- Advance raises the low-water marks of all scopes together, because a duplicate can arrive under
-- another source. If a consumer has more than a thousand scopes, advance raises a mark only when
-- the mark is behind by a hundredth of the retention, and markers are kept longer by this time.
-- Otherwise advance, which runs each minute, would write all scopes each time.

-- name: advance
update {prefix}scopes as s set low = (select {cutoff} from {prefix}retention r where r.consumer = ?1)
where s.consumer = ?1 and coalesce(s.low, -9000000000000000) < (
  select {cutoff} - r.keep_ms / 100 * ((select count(*) from (select 1 from {prefix}scopes o where o.consumer = ?1 limit 1001)) / 1001)
  from {prefix}retention r where r.consumer = ?1 and r.keep_ms > 0 and not r.off and r.horizon_ms <= r.keep_ms);

-- name: advanced
select ({cutoff}) * 1000 from {prefix}retention r
where r.consumer = ?1 and r.keep_ms > 0 and not r.off and r.horizon_ms <= r.keep_ms;

-- name: low
select s.number, s.low * 1000, cast(unixepoch('subsec') * 1000 as integer) * 1000 from {prefix}scopes s
where s.number in (values {list:(?)}) and s.low is not null;

-- Next due returns a scope with markers that may be removed. These are markers older than the
-- low-water mark of the scope, or older than the current cutoff if the cutoff is earlier. The
-- cutoff can be earlier because the retention was increased, or because the clock was set back. In
-- these cases, the low-water mark alone would remove newer markers too early.

-- name: next due
select s.number from (
  select s.number, min(s.low, {cutoff}) as bound from {prefix}scopes s join {prefix}retention r on r.consumer = s.consumer
  where s.consumer = ?1 and s.number > ?2 limit -1) s
where (
  select m.at from {prefix}markers m where m.scope = s.number and m.at < s.bound order by m.at limit 1) is not null
order by s.number limit 1;

-- Part returns some of these markers of a scope, and whether each of them may be removed.

-- name: part
select m.id, m.at * 1000, m.outcome in (1, 4, 5) and not exists (
    select 1 from {prefix}inbox i where i.scope = m.scope and i.id = m.id
    and not (i.state in ('COMPLETED', 'DISCARDED', 'DEAD_LETTERED') and i.changed_at < s.bound))
from (
  select s.number, min(s.low, {cutoff}) as bound from {prefix}scopes s join {prefix}retention r on r.consumer = s.consumer
  where s.number = ?1 limit 1) s
cross join {prefix}markers m on m.scope = s.number
where m.at < s.bound and m.at >= ?2 / 1000 and (m.at, m.id) > (?2 / 1000, ?3)
order by m.at, m.id limit ?4;

-- name: remove rows
delete from {prefix}inbox where scope = ? and id = ?;

-- name: remove marker
delete from {prefix}markers where scope = ? and id = ?;

-- name: reap bodies
update {prefix}inbox set payload = null, body_removed_at = cast(unixepoch('subsec') * 1000 as integer)
where number in (
  select i.number from {prefix}retention r join {prefix}scopes s on s.consumer = r.consumer
  join {prefix}inbox i on i.scope = s.number
  where r.consumer = ?1 and r.bodies_ms > 0 and i.state in ('COMPLETED', 'DISCARDED') and i.body_removed_at is null
    and i.changed_at < cast(unixepoch('subsec') * 1000 as integer) - r.bodies_ms
  order by i.changed_at limit ?2);
