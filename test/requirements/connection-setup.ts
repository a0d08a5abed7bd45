import type { Requirement } from '../requirements.js';

/** Rules of authorization, values and health checks of connections. */
export const connectionSetup = {
  'connection:setup:link': {
    source: 'House',
    behavior:
      'A setup link works until it was used successfully; a used, expired or unknown one shows a page with the reason and the next step. It opens for whoever has it, unless it names an account.',
  },
  'connection:setup:browser': {
    source: 'House',
    behavior:
      'The form of a setup link is accepted only from its own page with its token, in the browser that opened it, under the host of the service and outside of frames; only that browser completes the authorization.',
  },
  'connection:setup:header': {
    source: 'House',
    behavior:
      'If a server requires authorization and offers no OAuth, the page states the reason and accepts a key or token, by default in `Authorization`, which is stored encrypted; it refuses in words what the API refuses.',
  },
  'connection:setup:names': {
    source: 'House',
    behavior:
      "The page names the connection by its name, the server's own name or its host, in this order, and the application by APP_NAME; `namespace/connectionId` is a detail.",
  },
  'connection:setup:client': {
    source: 'Field',
    behavior:
      'If an authorization server has no registration, the page shows the redirect URI and accepts a client that was registered by hand.',
  },
  'connection:setup:client-refused': {
    source: 'House',
    behavior:
      'A given client that the authorization server refuses is reported as wrong and requested again, and never replaced automatically.',
  },
  'connection:setup:client-own': {
    source: 'House',
    behavior:
      'A given client is used for one connection at one issuer, is stored encrypted, is in no answer or log, and is deleted with its connection.',
  },
  'connection:setup:form': {
    source: 'House',
    behavior:
      'The form has defaults, limits and order of the published schema, shows errors beside their fields and what was entered, and never shows a secret or a value that was stored before.',
  },
  'connection:elicitation:url': {
    source: 'Field',
    behavior:
      'A client that declares URL elicitation and calls a connection that needs authorization gets it in the form of its revision: error -32042 with `elicitations` and `setupUrl`, or an `input_required` result; the next call after the authorization succeeds.',
  },
  'connection:elicitation:person': {
    source: 'Field',
    behavior:
      'An elicited link opens, page and form, only in a browser that is signed in as the account that called; signed out it leads to the sign-in and on, and to anybody else it says that it is for somebody else.',
  },
  'connection:setup:return': {
    source: 'House',
    behavior:
      'After success or a refusal a setup page returns to the `returnUrl` of its link, if SETUP_RETURN_ORIGINS has its origin.',
  },
  'connection:auth:own': {
    source: 'House',
    behavior:
      'A token is sent only for its connection and to its URL, and not beside an `Authorization` header of the connection.',
  },
  'connection:auth:step-up': {
    source: 'House',
    behavior:
      'A 403 for more scopes requests them together with the granted ones, at most twice an hour for the same scopes.',
  },
  'connection:refusal:words': {
    source: 'Field',
    behavior:
      'A call that lacks authorization or values answers 409 with `x-should-retry: false`, the missing part, and the URL to supply it.',
  },
  'connection:inputs:mapped': {
    source: 'Field',
    behavior: 'Values are stored by `x-from`, are sent to the upstream by `x-to`, and appear in no answer.',
  },
  'connection:inputs:kept': {
    source: 'House',
    behavior: 'A PUT with the masked address keeps the stored query values; query values in the address replace them.',
  },
  'connection:recheck:heals': {
    source: 'House',
    behavior: 'A connection whose server was unreachable becomes `connected` again by a recheck, without a call.',
  },
  'connection:recheck:private': {
    source: 'House',
    behavior:
      'A check that connections share sends no credentials, and its result reveals nothing about the other connections.',
  },
  'connection:recheck:polite': {
    source: 'House',
    behavior:
      'All connections to one public URL without credentials share one check, and the pause grows with each failed check.',
  },
  'connection:recheck:crash': {
    source: 'House',
    behavior: 'Another process checks the connections that a killed process had claimed.',
  },
  'connection:recheck:seldom': {
    source: 'House',
    behavior:
      'A working connection without calls is checked after CONNECTION_RECHECK_HOURS; with 0 it is never checked.',
  },
} as const satisfies Record<string, Requirement>;
