/** Rules of authorization, values and health checks of connections. */
export const connectionSetup = [
  'connection:setup:client | Field | If an authorization server has no registration, the page shows the redirect URI and accepts a client that was registered by hand.',
  'connection:elicitation:url | Field | A client that declares URL elicitation and calls a connection that needs authorization gets it in the form of its revision: error -32042 with `elicitations` and `setupUrl`, or an `input_required` result; the next call after the authorization succeeds.',
  'connection:elicitation:person | Field | An elicited link opens, page and form, only in a browser that is signed in as the account that called; signed out it leads to the sign-in and on, and to anybody else it says that it is for somebody else.',
  'connection:refusal:words | Field | A call that lacks authorization or values answers 409 with `x-should-retry: false`, the missing part, and the URL to supply it.',
  'connection:inputs:mapped | Field | Values are stored by `x-from`, are sent to the upstream by `x-to`, and appear in no answer.',
];
