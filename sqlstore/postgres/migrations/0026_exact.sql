-- What these functions do is the same as before; no function or operator of another schema in
-- the search_path can take the place of what they call.
create or replace function {prefix}expect(changed bigint) returns bigint language plpgsql as $function$
begin
  if changed <> 1 then
    raise exception using errcode = 'SM001', message = pg_catalog.concat('changed ', changed, ' rows, not 1');
  end if;
  return changed;
end
$function$;

create or replace function {prefix}stand(stood bigint, wanted bigint) returns bigint language plpgsql as $function$
begin
  if stood <> wanted then
    raise exception using errcode = 'SM002', message = pg_catalog.concat(stood, ' of ', wanted, ' claims stand');
  end if;
  return stood;
end
$function$;

create or replace function {prefix}day_bound(kind text, day date) returns bytea language sql immutable as $function$
  select case kind
    when 'uuidv7' then pg_catalog.decode('01' || pg_catalog.lpad(pg_catalog.to_hex(ms), 12, '0'), 'hex')
    when 'ulid' then (
      select '\x00'::bytea || pg_catalog.decode(pg_catalog.string_agg(
        pg_catalog.substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', ((ms >> (5 * (9 - i))) & 31::bigint)::int + 1, 1), '' order by i), 'escape')
      from pg_catalog.generate_series(0, 9) i)
    when 'snowflake' then '\x00'::bytea || pg_catalog.decode(pg_catalog.lpad(greatest((ms - 1288834974657) << 22, 0)::text, 19, '0'), 'escape')
  end
  from (select (day - date '1970-01-01')::bigint * 86400000 as ms) since
$function$;
