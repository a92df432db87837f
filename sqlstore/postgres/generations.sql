-- name: generations
select g.generation, g.state, (extract(epoch from g.since) * 1000)::bigint, (extract(epoch from g.opened_at) * 1000)::bigint, g.opened_by, g.why,
  greatest(coalesce((extract(epoch from greatest(g.fenced_until, f.until) - clock_timestamp()) * 1000)::bigint, 0), 0)
from {prefix}generation_states g left join {prefix}generation_fences f on f.consumer = g.consumer and f.generation = g.generation
where g.consumer = $1 order by g.generation;

-- name: first generation
insert into {prefix}generation_states (consumer, generation, state, since, opened_at, opened_by, why)
values ($1, 0, 2, clock_timestamp(), clock_timestamp(), '', '')
on conflict do nothing;

-- name: open generation
insert into {prefix}generation_states (consumer, generation, state, since, opened_at, opened_by, why)
select consumer, max(generation) + 1, 1, clock_timestamp(), clock_timestamp(), $2, $3
from {prefix}generation_states where consumer = $1 group by consumer
on conflict do nothing;

-- name: fence generation
insert into {prefix}generation_fences as f (consumer, generation, until)
select consumer, generation, clock_timestamp() + $3::bigint * interval '1 millisecond'
from {prefix}generation_states where consumer = $1 and generation = $2 and state in (1, 2)
on conflict (consumer, generation) do update set until = excluded.until where f.until <= clock_timestamp();

-- name: confirm fence
update {prefix}generation_states s set fenced_until = f.until
from {prefix}generation_fences f
where s.consumer = $1 and s.generation = $2 and f.consumer = s.consumer and f.generation = s.generation
  and s.state in (1, 2) and f.until > clock_timestamp();

-- name: lift fences
delete from {prefix}generation_fences where consumer = $1;

-- name: unfence generations
update {prefix}generation_states set fenced_until = null where consumer = $1 and fenced_until is not null;

-- Cut fences and cut confirmed shorten fences that were set while the database's clock was ahead.
-- Such a fence ends after the longest time that a fence can have.

-- name: cut fences
update {prefix}generation_fences set until = clock_timestamp() + $2::bigint * interval '1 millisecond'
where consumer = $1 and until > clock_timestamp() + $2::bigint * interval '1 millisecond';

-- name: cut confirmed
update {prefix}generation_states set fenced_until = clock_timestamp() + $2::bigint * interval '1 millisecond'
where consumer = $1 and fenced_until > clock_timestamp() + $2::bigint * interval '1 millisecond';

-- name: turn generation
update {prefix}generation_states set state = $4, since = clock_timestamp()
where consumer = $1 and generation = $2 and state = $3 and fenced_until > clock_timestamp();

-- name: end generation
update {prefix}generation_states set state = 4, since = clock_timestamp(), fenced_until = null
where consumer = $1 and generation = $2 and state in (1, 3);

-- Working locks the row until the transaction ends. It reads the current version of the row, even
-- if the snapshot of the statement is older. A switch of generations waits for all transactions
-- that hold the lock, and a transaction that waited for a switch reads the result of the switch.

-- name: working
select 1 from {prefix}generation_states s
where s.consumer = $1 and s.generation = $2 and s.state = $3 and (s.fenced_until is null or s.fenced_until <= clock_timestamp())
  and not exists (
    select 1 from {prefix}generation_fences f where f.consumer = s.consumer and f.generation = s.generation and f.until > clock_timestamp())
for share of s;

-- name: forget results
delete from {prefix}results where ctid = any (array(
  select r.ctid from {prefix}results r join {prefix}scopes s on s.number = r.scope where s.consumer = $1::bytea limit $2));

-- name: forget rows
delete from {prefix}inbox where number = any (array(
  select i.number from {prefix}inbox i join {prefix}scopes s on s.number = i.scope where s.consumer = $1::bytea limit $2));

-- name: forget markers
delete from {prefix}markers where ctid = any (array(
  select m.ctid from {prefix}markers m join {prefix}scopes s on s.number = m.scope where s.consumer = $1::bytea limit $2));

-- name: forget streams
delete from {prefix}streams where ctid = any (array(
  select t.ctid from {prefix}streams t join {prefix}scopes s on s.number = t.scope where s.consumer = $1::bytea limit $2));

-- name: forget positions
delete from {prefix}positions where consumer = $1::text;
