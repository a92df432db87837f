-- name: generations
select g.generation, g.state, g.since, g.opened_at, g.opened_by, g.why, max(max(coalesce(g.fenced_until, 0), coalesce(f.until, 0)) - cast(unixepoch('subsec') * 1000 as integer), 0)
from {prefix}generation_states g left join {prefix}generation_fences f on f.consumer = g.consumer and f.generation = g.generation
where g.consumer = ? order by g.generation;

-- name: first generation
insert into {prefix}generation_states (consumer, generation, state, since, opened_at, opened_by, why)
values (?, 0, 2, cast(unixepoch('subsec') * 1000 as integer), cast(unixepoch('subsec') * 1000 as integer), '', '')
on conflict do nothing;

-- name: open generation
insert into {prefix}generation_states (consumer, generation, state, since, opened_at, opened_by, why)
select consumer, max(generation) + 1, 1, cast(unixepoch('subsec') * 1000 as integer), cast(unixepoch('subsec') * 1000 as integer), ?2, ?3
from {prefix}generation_states where consumer = ?1 group by consumer
on conflict do nothing;

-- name: fence generation
insert into {prefix}generation_fences as f (consumer, generation, until)
select consumer, generation, cast(unixepoch('subsec') * 1000 as integer) + ?3
from {prefix}generation_states where consumer = ?1 and generation = ?2 and state in (1, 2)
on conflict (consumer, generation) do update set until = excluded.until where f.until <= cast(unixepoch('subsec') * 1000 as integer);

-- name: confirm fence
update {prefix}generation_states set fenced_until = (
  select f.until from {prefix}generation_fences f
  where f.consumer = ?1 and f.generation = ?2 and f.until > cast(unixepoch('subsec') * 1000 as integer))
where consumer = ?1 and generation = ?2 and state in (1, 2);

-- name: lift fences
delete from {prefix}generation_fences where consumer = ?;

-- name: unfence generations
update {prefix}generation_states set fenced_until = null where consumer = ? and fenced_until is not null;

-- Cut fences and cut confirmed shorten fences that were set while the clock was ahead. Such a fence
-- ends after the longest time that a fence can have.

-- name: cut fences
update {prefix}generation_fences set until = cast(unixepoch('subsec') * 1000 as integer) + ?2
where consumer = ?1 and until > cast(unixepoch('subsec') * 1000 as integer) + ?2;

-- name: cut confirmed
update {prefix}generation_states set fenced_until = cast(unixepoch('subsec') * 1000 as integer) + ?2
where consumer = ?1 and fenced_until > cast(unixepoch('subsec') * 1000 as integer) + ?2;

-- name: turn generation
update {prefix}generation_states set state = ?4, since = cast(unixepoch('subsec') * 1000 as integer)
where consumer = ?1 and generation = ?2 and state = ?3 and fenced_until > cast(unixepoch('subsec') * 1000 as integer);

-- name: end generation
update {prefix}generation_states set state = 4, since = cast(unixepoch('subsec') * 1000 as integer), fenced_until = null
where consumer = ? and generation = ? and state in (1, 3);

-- Working is read in a transaction that may write. No other transaction writes at the same time.

-- name: working
select 1 from {prefix}generation_states
where consumer = ? and generation = ? and state = ? and coalesce(fenced_until, 0) <= cast(unixepoch('subsec') * 1000 as integer);

-- name: forget results
delete from {prefix}results where rowid in (
  select r.rowid from {prefix}results r join {prefix}scopes s on s.number = r.scope where s.consumer = ?1 limit ?2);

-- name: forget rows
delete from {prefix}inbox where number in (
  select i.number from {prefix}inbox i join {prefix}scopes s on s.number = i.scope where s.consumer = ?1 limit ?2);

-- name: forget markers
delete from {prefix}markers where (scope, id) in (
  select m.scope, m.id from {prefix}scopes s join {prefix}markers m on m.scope = s.number where s.consumer = ?1 limit ?2);

-- name: forget streams
delete from {prefix}streams where (scope, name) in (
  select t.scope, t.name from {prefix}scopes s join {prefix}streams t on t.scope = s.number where s.consumer = ?1 limit ?2);

-- name: forget positions
delete from {prefix}positions where consumer = ?;
