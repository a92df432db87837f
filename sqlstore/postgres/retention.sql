-- The times in arguments and results are in microseconds since 1970.

-- name: retain
insert into {prefix}retention (consumer, keep_ms, bodies_ms, horizon_ms, why, off, progress_at)
values ($1, $2, $3, $4, $5, $6, clock_timestamp())
on conflict (consumer) do update set keep_ms = excluded.keep_ms, bodies_ms = excluded.bodies_ms,
  horizon_ms = excluded.horizon_ms, why = excluded.why, off = excluded.off;

-- Reap policy returns the retention that a consumer has recorded, and the number of its table with
-- daily partitions, if it has one.

-- name: reap policy
select r.keep_ms, r.bodies_ms, r.horizon_ms, r.why, r.off, d.number, d.kind
from {prefix}retention r left join {prefix}dated d on d.consumer = r.consumer where r.consumer = $1;

-- name: progress
update {prefix}retention set progress_at = clock_timestamp() where consumer = $1;

-- name: age
insert into {prefix}ages (consumer, lane, oldest, at)
values ($1, $2, timestamptz 'epoch' + $3::bigint * interval '1 microsecond', clock_timestamp())
on conflict (consumer, lane) do update set oldest = excluded.oldest, at = excluded.at;

-- name: forget age
delete from {prefix}ages where consumer = $1 and lane = $2;

-- Cutoff is the time before which the records of a consumer may be removed.

-- name: cutoff
least(clock_timestamp(), r.progress_at, (select min(coalesce(a.oldest, a.at)) from {prefix}ages a where a.consumer = r.consumer))
  - r.keep_ms * interval '1 millisecond'

-- name: retentions
select r.consumer, r.keep_ms, r.bodies_ms, r.horizon_ms, r.why, r.off,
  (extract(epoch from r.progress_at) * 1000000)::bigint,
  coalesce(a.lane, ''), (extract(epoch from a.oldest) * 1000000)::bigint,
  case when r.keep_ms > 0 then (extract(epoch from {cutoff}) * 1000000)::bigint end,
  (select (extract(epoch from max(s.low)) * 1000000)::bigint from {prefix}scopes s where s.consumer = r.consumer)
from {prefix}retention r
left join lateral (
  select a.lane, coalesce(a.oldest, a.at) as oldest from {prefix}ages a
  where a.consumer = r.consumer and coalesce(a.oldest, a.at) < r.progress_at - interval '5 minutes'
  order by coalesce(a.oldest, a.at), a.lane limit 1
) a on true
where $1::bytea is null or r.consumer = $1 order by r.consumer;

-- First due returns the time up to which the last complete walk removed markers. Markers that were
-- written after this time may exist. Before the first complete walk, first due returns the time of
-- the oldest due marker at the beginning of the table, because most old markers are there.

-- name: first due
select (extract(epoch from case
  when r.walked_to is null then (
    select min(m.at) from {prefix}markers m join {prefix}scopes s on s.number = m.scope
    where m.ctid < '(1000,0)'::tid and s.consumer = r.consumer
      and m.at < timestamptz 'epoch' + $2::bigint * interval '1 microsecond' and m.outcome in (1, 4, 5))
  when r.walked_to < timestamptz 'epoch' + $2::bigint * interval '1 microsecond' then r.walked_to
  end) * 1000000)::bigint
from {prefix}retention r where r.consumer = $1;

-- Last day estimates the number of markers that the consumer wrote in the last day, from a sample
-- of a thousand blocks of the table, or from all blocks if the table has fewer.

-- name: last day
select least($2, ceil(count(*)::numeric * greatest(1.0, pg_relation_size('{prefix}markers')::numeric / 8192000.0))::bigint)
from {prefix}markers m tablesample system (least(100, 819200000.0 / greatest(pg_relation_size('{prefix}markers'), 1)::numeric))
join {prefix}scopes s on s.number = m.scope
where s.consumer = $1 and m.at > statement_timestamp() - interval '1 day';

-- name: marker bytes
select coalesce((pg_total_relation_size(c.oid)::float8 / nullif(c.reltuples::float8, 0::float8)), 0)::bigint
from pg_class c where c.oid = to_regclass('{prefix}markers') and c.reltuples >= 1000::float4;

-- name: removed
select (extract(epoch from max(s.low)) * 1000000)::bigint from {prefix}scopes s where s.consumer = $1;

-- Advance raises the low-water marks of all scopes together, because a duplicate can arrive under
-- another source. If a consumer has more than a thousand scopes, advance raises a mark only when
-- the mark is behind by a hundredth of the retention, and markers are kept longer by this time.
-- Otherwise advance, which runs each minute, would write all scopes each time.

-- name: advance
with kept as (
  select r.consumer, {cutoff} as cutoff, r.keep_ms * interval '0.01 milliseconds' * (
    select (count(*) / 1001)::float8 from (select 1 from {prefix}scopes s where s.consumer = $1 limit 1001) s) as step
  from {prefix}retention r
  where r.consumer = $1 and r.keep_ms > 0 and not r.off and r.horizon_ms <= r.keep_ms
), raised as (
  update {prefix}scopes s set low = k.cutoff from kept k
  where s.consumer = k.consumer and (s.low is null or s.low < k.cutoff) and s.number = any(array(
    select o.number from {prefix}scopes o where o.consumer = $1 and o.low is null
    union all
    select o.number from {prefix}scopes o where o.consumer = $1 and o.low < (select n.cutoff - n.step from kept n)))
)
select (extract(epoch from cutoff) * 1000000)::bigint from kept;

-- name: low
select s.number, (extract(epoch from s.low) * 1000000)::bigint, (extract(epoch from statement_timestamp()) * 1000000)::bigint from {prefix}scopes s
where s.number = any($1::bigint[]) and s.low is not null;

-- Due is the time before which markers of a consumer may be removed: the lowest low-water mark of
-- its scopes, or the current cutoff if the cutoff is earlier. The cutoff can be earlier because the
-- retention was increased, or because the clock was set back. In these cases, the low-water mark
-- alone would remove newer markers too early. Nothing is due while a scope has no low-water mark.
--
-- The reaper walks through the table in physical order. It starts where the last walk of the
-- consumer ended, and ends when it has reached that place again. An index on the time would cost
-- more for each message than all walks do. Place returns the place where the walk starts, the
-- number of blocks, and the time before which a walk that starts now removes markers. The number of
-- blocks is -1 if no walk is needed, because a complete walk ended less than $2 microseconds ago.

-- name: due
select case when not exists (select 1 from {prefix}scopes s where s.consumer = $1 and s.low is null)
  then least((select min(s.low) from {prefix}scopes s where s.consumer = $1), {cutoff}) end as at
from {prefix}retention r where r.consumer = $1

-- name: place
with due as materialized ({due})
select case when d.at is null or r.walked_at > clock_timestamp() - $2::bigint * interval '1 microsecond' then -1 else p.blocks end,
  case when r.walk_block < p.blocks then r.walk_block else 0 end,
  (extract(epoch from coalesce(d.at, {cutoff})) * 1000000)::bigint
from {prefix}retention r cross join due d
cross join lateral (select pg_relation_size('{prefix}markers') / current_setting('block_size')::bigint as blocks) p
where r.consumer = $1;

-- Walked records the place that a walk has reached and, at the end of the walk, the time before
-- which it removed markers. Walked does not wait for locks. Progress that was not recorded is
-- walked again.

-- name: walked
with free as materialized (select r.consumer from {prefix}retention r where r.consumer = $1 for update skip locked)
update {prefix}retention r set walk_block = $2,
  walked_to = coalesce(timestamptz 'epoch' + $3::bigint * interval '1 microsecond', r.walked_to),
  walked_at = case when $3::bigint is null then r.walked_at else clock_timestamp() end
from free f where r.consumer = f.consumer;

-- Patience changes the settings of the reaper's transaction. The reaper waits only briefly for
-- locks. Other transactions do not wait for a disk while the reaper holds their rows: if a crash of
-- the server undoes some work of the reaper, the reaper does this work again. The plans read no
-- whole tables, because the reaper always looks for few rows.

-- name: patience
select set_config('lock_timeout', '20ms', true), set_config('statement_timeout', '10s', true),
  set_config('idle_in_transaction_session_timeout', '30s', true),
  set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
  set_config('enable_material', 'off', true), set_config('synchronous_commit', 'off', true),
  pg_try_advisory_xact_lock(hashtextextended(encode($1::bytea, 'hex') || ' {prefix}reap', 0));

-- Part is a part of reap rows and reap: a limited number of due markers between two places of the
-- table.
--
-- Reap rows removes the rows of these markers if all rows of the identity have ended. It skips rows
-- that other transactions have locked. It reads other tables row by row, by key, whatever
-- statistics the planner has.

-- name: part
due as materialized ({due}), part as materialized (
  select m.ctid as place, m.scope, m.id, (select due.at from due) as at from {prefix}markers m
  where m.ctid > $2::text::tid and m.ctid < $3::text::tid and m.at < (select due.at from due)
    and (select s.consumer from {prefix}scopes s where s.number = m.scope) = $1
  order by m.ctid limit $4
)

-- name: reap rows
with {part}, ended as materialized (
  select r.number from part p cross join lateral (
    select i.number from {prefix}inbox i
    where i.scope = p.scope and i.id = p.id and i.state in ('COMPLETED', 'DISCARDED', 'DEAD_LETTERED')
      and i.changed_at < p.at
      and (select count(*) from {prefix}inbox o where o.scope = p.scope and o.id = p.id
        and not (o.state in ('COMPLETED', 'DISCARDED', 'DEAD_LETTERED') and o.changed_at < p.at)) = 0
    limit 1000 for update skip locked) r
)
delete from {prefix}inbox i using ended e where i.number = e.number;

-- Reap removes those of the same markers whose messages have ended and that have no rows any more.
-- If there may be more due markers, it returns the place of the last one.

-- name: reap
with {part}, free as materialized (
  select f.place from part p cross join lateral (
    select m.ctid as place from {prefix}markers m
    where m.ctid = p.place and m.outcome in (1, 4, 5)
      and (select count(*) from {prefix}inbox i where i.scope = p.scope and i.id = p.id) = 0
    limit 1 for update skip locked) f
), gone as (
  delete from {prefix}markers m using free f where m.ctid = f.place returning m.scope, m.id
), results as (
  delete from {prefix}results r using gone g where r.scope = g.scope and r.id = g.id
)
select (select count(*) from part), (select count(*) from gone), (
  select p.place::text from part p where (select count(*) from part) = $4 order by p.place desc limit 1);

-- name: reap bodies
with due as materialized (
  select i.number from {prefix}retention r join {prefix}scopes s on s.consumer = r.consumer
  cross join lateral (
    select i.number from {prefix}inbox i
    where i.scope = s.number and i.state in ('COMPLETED', 'DISCARDED') and i.body_removed_at is null
      and i.changed_at < statement_timestamp() - r.bodies_ms * interval '1 millisecond'
    order by i.changed_at limit $2 for update of i skip locked) i
  where r.consumer = $1 and r.bodies_ms > 0 limit $2
), edited as (
  update {prefix}edits e set body = null from {prefix}inbox i
  where i.number = e."row" and e.body is not null and (i.body_removed_at is not null or i.number in (select number from due))
)
update {prefix}inbox i set payload = null, body_removed_at = clock_timestamp()
from due d where i.number = d.number;

-- Index creates the index with which the reaper finds bodies that are due. It is built
-- concurrently, so that it does not block writers.

-- name: index
create index concurrently if not exists {name}inbox_bodies on {prefix}inbox (scope, changed_at) where state in ('COMPLETED', 'DISCARDED') and body_removed_at is null;

-- name: unindexed
select to_regclass('{prefix}inbox_bodies') is not null
from pg_class t where t.oid = to_regclass('{prefix}inbox')
  and not exists (select 1 from pg_index x where x.indexrelid = to_regclass('{prefix}inbox_bodies') and x.indisvalid and x.indrelid = t.oid);

-- name: unindex
drop index concurrently if exists {prefix}inbox_bodies;

-- name: index causes
create index concurrently if not exists {name}inbox_cause on {prefix}inbox (cause) where cause is not null;

-- name: unindexed causes
select to_regclass('{prefix}inbox_cause') is not null
from pg_class t where t.oid = to_regclass('{prefix}inbox')
  and not exists (select 1 from pg_index x where x.indexrelid = to_regclass('{prefix}inbox_cause') and x.indisvalid and x.indrelid = t.oid);

-- name: unindex causes
drop index concurrently if exists {prefix}inbox_cause;

-- name: index due
create index concurrently if not exists {name}inbox_due on {prefix}inbox (consumer, due_at, number)
where state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED');

-- name: unindexed due
select to_regclass('{prefix}inbox_due') is not null
from pg_class t where t.oid = to_regclass('{prefix}inbox')
  and not exists (select 1 from pg_index x where x.indexrelid = to_regclass('{prefix}inbox_due') and x.indisvalid and x.indrelid = t.oid);

-- name: unindex due
drop index concurrently if exists {prefix}inbox_due;

-- Reaper is a procedure for a scheduler inside the database. It does the same as the statements
-- above, in slices, each in its own transaction. If the time of a call is over, the next call
-- continues at the same place. For a consumer whose markers are in a table with daily partitions,
-- the procedure drops the partitions that are due, as in dated.sql. It creates no partitions, and
-- does not remove markers that were written aside.

-- name: reaper
create or replace procedure {prefix}reap(consumer text, most integer default 1000, budget interval default '30 seconds')
language plpgsql as $procedure$
declare
  name bytea := convert_to(consumer, 'UTF8');
  began timestamptz := clock_timestamp();
  size bigint; -- of the table in blocks, as the walk begins
  blocks bigint; -- that are left of it
  block bigint;
  past bigint;
  walk_to bigint;
  place text;
  settings record;
  looked bigint;
  gone bigint;
  bodies bigint;
  cutoff bigint;
  table_of_days text;
  due record;
  held boolean;
begin
  execute $statement${advance}$statement$ into cutoff using name;
  commit;
  loop
    execute $statement${patience}$statement$ into settings using name;
    exit when not settings.pg_try_advisory_xact_lock or not exists (
      select 1 from {prefix}retention r where r.consumer = name and not r.off and r.horizon_ms <= r.keep_ms and r.keep_ms > 0);
    if place is null then
      execute $statement${place}$statement$ into blocks, block, walk_to using name, 0;
      exit when blocks = 0;
      size := blocks;
      place := format('(%s,0)', block);
    end if;
    past := block + least(greatest(most / 32, 16), blocks, size - block);
    execute $statement${reap rows}$statement$ using name, place, format('(%s,0)', past), most;
    execute $statement${reap}$statement$ into looked, gone, place using name, place, format('(%s,0)', past), most;
    if place is null then
      blocks := blocks - (past - block);
      block := case when past < size then past else 0 end;
      place := format('(%s,0)', block);
      execute $statement${walked}$statement$ using name, block, case when blocks <= 0 then walk_to end;
    end if;
    commit;
    exit when blocks <= 0;
    exit when clock_timestamp() - began > budget;
  end loop;
  commit;
  loop
    execute $statement${patience}$statement$ into settings using name;
    exit when not settings.pg_try_advisory_xact_lock or not exists (
      select 1 from {prefix}retention r where r.consumer = name and not r.off);
    execute $statement${reap bodies}$statement$ using name, most;
    get diagnostics bodies = row_count;
    commit;
    exit when bodies < most or clock_timestamp() - began > budget;
  end loop;
  commit;
  if cutoff is null then
    return;
  end if;
  -- What is older than low is never fresh: that is committed before any day goes.
  update {prefix}dated d set low_day = least(w.day, d.high_day), low = {prefix}day_bound(d.kind, least(w.day, d.high_day))
  from (select ((timestamptz 'epoch' + cutoff * interval '1 microsecond') at time zone 'UTC')::date as day) w
  where d.consumer = name and d.low_day < least(w.day, d.high_day);
  select '{prefix}markers_' || d.number::text into table_of_days from {prefix}dated d where d.consumer = name;
  commit;
  loop -- rows that have ended would keep their days
    delete from {prefix}inbox i using (
      select o.number from {prefix}dated d join {prefix}scopes s on s.consumer = d.consumer
      cross join lateral (
        select i.number from {prefix}inbox i
        where i.scope = s.number and i.id < d.low and i.state in ('COMPLETED', 'DISCARDED', 'DEAD_LETTERED') and i.changed_at < s.low
        order by i.id limit most for update of i skip locked) o
      where d.consumer = name limit most) ended
    where i.number = ended.number;
    get diagnostics gone = row_count;
    commit;
    exit when gone < most or clock_timestamp() - began > budget;
  end loop;
  loop -- what was kept beside markers of days that go
    delete from {prefix}results r using (
      select s.number, o.id from {prefix}dated d join {prefix}scopes s on s.consumer = d.consumer
      cross join lateral (
        select r.id from {prefix}results r where r.scope = s.number and r.id < d.low
        order by r.id limit most for update of r skip locked) o
      where d.consumer = name limit most) ended
    where r.scope = ended.number and r.id = ended.id;
    get diagnostics gone = row_count;
    commit;
    exit when gone < most or clock_timestamp() - began > budget;
  end loop;
  perform set_config('bytea_output', 'hex', true);
  for due in
    select c.oid::regclass::text as day, b.bounds from {prefix}dated d
    join pg_inherits h on h.inhparent = to_regclass(table_of_days) join pg_class c on c.oid = h.inhrelid
    cross join lateral regexp_match(pg_get_expr(c.relpartbound, c.oid), '^FOR VALUES FROM \(''\\x([0-9a-f]*)''\) TO \(''\\x([0-9a-f]*)''\)$') b (bounds)
    where d.consumer = name and decode(b.bounds[2], 'hex') <= d.low order by b.bounds[1]
  loop
    commit; -- the day before
    perform set_config('lock_timeout', '20ms', true), set_config('statement_timeout', '10s', true);
    continue when not pg_try_advisory_xact_lock(hashtextextended(table_of_days || ' drop', 0));
    begin
      for step in 1..2 loop -- before the lock, so that nobody waits for a day that stays, and under it
        execute format($statement$
          select exists (
            select 1 from {prefix}scopes s where s.consumer = $1 and (
              exists (select 1 from {prefix}inbox i where i.scope = s.number and i.id >= $2 and i.id < $3)
              or exists (select 1 from %s m where m.scope = s.number and m.id >= $2 and m.id < $3 and m.outcome in (2, 3))))$statement$, table_of_days)
          into held using name, decode(due.bounds[1], 'hex'), decode(due.bounds[2], 'hex');
        exit when held;
        if step = 1 then
          execute format('lock table only %s in access exclusive mode', table_of_days);
        else
          execute format('drop table %s', due.day);
        end if;
      end loop;
    exception when lock_not_available or deadlock_detected then
      null; -- others have it, and the next call tries again
    end;
  end loop;
end
$procedure$;

-- name: index low
create index concurrently if not exists {name}scopes_low on {prefix}scopes (consumer, low);

-- name: unindexed low
select to_regclass('{prefix}scopes_low') is not null
from pg_class t where t.oid = to_regclass('{prefix}scopes')
  and not exists (select 1 from pg_index x where x.indexrelid = to_regclass('{prefix}scopes_low') and x.indisvalid and x.indrelid = t.oid);

-- name: unindex low
drop index concurrently if exists {prefix}scopes_low;
