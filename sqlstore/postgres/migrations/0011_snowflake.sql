-- Days of Snowflake ids: decimal numbers, whose texts sort by time while all have 19 digits,
-- which those of 2018-05 to 2080 have. Earlier bounds begin with zeros, below all of these.
create or replace function {prefix}day_bound(kind text, day date) returns bytea language sql immutable as $function$
  select case kind
    when 'uuidv7' then pg_catalog.decode('01' || pg_catalog.lpad(pg_catalog.to_hex(ms), 12, '0'), 'hex')
    when 'ulid' then (
      select '\x00'::bytea || pg_catalog.decode(pg_catalog.string_agg(
        pg_catalog.substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', ((ms >> (5 * (9 - i))) & 31)::int + 1, 1), '' order by i), 'escape')
      from pg_catalog.generate_series(0, 9) i)
    when 'snowflake' then '\x00'::bytea || pg_catalog.decode(pg_catalog.lpad(greatest((ms - 1288834974657) << 22, 0)::text, 19, '0'), 'escape')
  end
  from (select (day - date '1970-01-01')::bigint * 86400000 as ms) since
$function$;
