import type { Requirement } from '../requirements.js';

/** Rules of authorization, values and health checks of connections. */
export const connectionSetup = {
  'connection:setup:page': {
    source: 'House',
    behavior: 'One press on the setup page of a connection leads to the authorization server, and back to `connected`.',
  },
  'connection:setup:link': {
    source: 'House',
    behavior: 'A setup link works until something came of it; any other link opens a page that says what to do.',
  },
  'connection:setup:browser': {
    source: 'House',
    behavior: 'Only the page itself, in the browser that opened it and in no frame, can send the form of a setup link.',
  },
  'connection:setup:header': {
    source: 'House',
    behavior:
      'Where a server wants authorization and none can be asked for, the page says why and takes a header, stored encrypted.',
  },
  'connection:setup:client': {
    source: 'Field',
    behavior:
      'Where an authorization server registers nobody, the page names the redirect URI and takes a client registered by hand.',
  },
  'connection:setup:client-refused': {
    source: 'House',
    behavior:
      'A given client that its server refuses is said to be wrong and asked for again, never replaced by itself.',
  },
  'connection:setup:client-own': {
    source: 'House',
    behavior:
      'A given client serves one connection at one issuer, lies encrypted, is in no answer or log, and goes with its connection.',
  },
  'connection:setup:form': {
    source: 'House',
    behavior: 'The page asks for each value by its label, says beside it what is wrong, and repeats no value.',
  },
  'connection:setup:schema': {
    source: 'House',
    behavior:
      'The form has defaults, limits and order of the published schema, room for long text, and the title and icon of the server.',
  },
  'oauth:page:server': {
    source: 'House',
    behavior: 'The page that authorizes a release shows the title, description and icon of the server.',
  },
  'connection:setup:return': {
    source: 'House',
    behavior:
      'After success or a refusal a setup page returns to the `returnUrl` of its link, if SETUP_RETURN_ORIGINS has its origin.',
  },
  'connection:auth:own': {
    source: 'House',
    behavior: 'A token is sent for the connection it was given to, to the URL it was given for, and for no other.',
  },
  'connection:auth:own-header': {
    source: 'House',
    behavior: 'An `Authorization` header of the connection itself is sent, and no token beside it.',
  },
  'connection:auth:single-refresh': {
    source: 'House',
    behavior: 'However many calls in however many processes meet an ended token, one refresh is sent and all succeed.',
  },
  'connection:auth:ahead': {
    source: 'House',
    behavior: 'The token of a connection in use is renewed ahead of its end, without a call.',
  },
  'connection:auth:step-up': {
    source: 'House',
    behavior:
      'A 403 for more scopes asks for them with those that were granted, and at most twice an hour for the same.',
  },
  'connection:auth:revoked': {
    source: 'House',
    behavior: 'Deleting a connection or its namespace revokes the tokens at their authorization server.',
  },
  'connection:refusal:words': {
    source: 'Field',
    behavior:
      'A call that lacks authorization or values answers 409 with `x-should-retry: false`, what lacks and where.',
  },
  'connection:inputs:mapped': {
    source: 'Field',
    behavior: 'Values reach the upstream where `x-to` says, were stored where `x-from` says, and appear in no answer.',
  },
  'connection:inputs:kept': {
    source: 'House',
    behavior: 'A PUT with the address as it is shown keeps the query values; those it names replace theirs.',
  },
  'connection:recheck:heals': {
    source: 'House',
    behavior: 'A connection whose server was away is `connected` again by itself, without a call.',
  },
  'connection:recheck:private': {
    source: 'House',
    behavior: "A look that connections share sends nobody's credentials, and none of them is told what others may see.",
  },
  'connection:recheck:polite': {
    source: 'House',
    behavior:
      'All connections to one public URL without credentials share one dial, and each that fails waits longer for the next.',
  },
  'connection:recheck:crash': {
    source: 'House',
    behavior: 'Connections that a process had taken to look at when it died are looked at by another one.',
  },
  'connection:recheck:failed': {
    source: 'House',
    behavior: 'A connection that cannot be looked at for a reason of ours says so, and is looked at ever more seldom.',
  },
  'connection:recheck:seldom': {
    source: 'House',
    behavior: 'A connection that works and is not called is looked at after CONNECTION_RECHECK_HOURS, with 0 never.',
  },
} as const satisfies Record<string, Requirement>;
