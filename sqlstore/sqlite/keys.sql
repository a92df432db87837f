-- name: key
select cast(unixepoch('subsec') * 1000 as integer) * 1000, k.ended, k.token, k.first_at, k.locked_until, k.kept_until, k.started, k.finished, k.version, k.sum, k.result, k.leased_at
from (select 1) one left join {prefix}keys k on k.key = ?1;

-- Known key reads a key for display, without a lock.

-- name: known key
select coalesce(k.ended, 0), k.first_at / 1000, k.locked_until / 1000, k.kept_until / 1000, k.started, k.finished, k.version, k.sum, k.result is not null
from {prefix}keys k where k.key = ?1 and k.kept_until > cast(unixepoch('subsec') * 1000 as integer) * 1000;

-- name: new key
insert into {prefix}keys (consumer, source, id, key, ended, token, first_at, locked_until, kept_until, started, finished, version, sum, result, leased_at)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
on conflict do nothing;

-- name: change key
update {prefix}keys set ended = ?2, token = ?3, first_at = ?4, locked_until = ?5, kept_until = ?6,
  started = ?7, finished = ?8, version = ?9, sum = ?10, result = ?11, leased_at = ?12
where key = ?1;

-- name: remove key
delete from {prefix}keys where key = ?1;

-- name: forget keys
delete from {prefix}keys where key in (
  select k.key from {prefix}keys k where k.kept_until < cast(unixepoch('subsec') * 1000 as integer) * 1000 order by k.kept_until limit ?1);

-- Abandoned keys reads some keys, and returns those whose calls no process is working on. If there
-- may be more keys, it also returns the last key that it has read, so that the next call can
-- continue there.

-- name: abandoned keys
select w.key, w.here, w.place = ?2, case when w.here then w.source end, case when w.here then w.id end, w.started, w.quiet, case when w.here then w.result end
from (
  select k.key, k.source, k.id, k.started, k.result, row_number() over (order by k.key) as place,
    t.now - k.locked_until as quiet,
    k.consumer = ?3 and k.result is not null and k.ended in (0, 3, 4) and k.kept_until > t.now and k.locked_until <= t.now - ?4 as here
  from (select * from {prefix}keys where key > ?1 order by key limit ?2) k,
    (select cast(unixepoch('subsec') * 1000 as integer) * 1000 as now) t
) w
where w.here or w.place = ?2
order by w.key;
