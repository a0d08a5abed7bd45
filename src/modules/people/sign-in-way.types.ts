import type { Html } from '../../platform/pages/html.js';
import type { SessionCaller } from '../auth/access.types.js';

/** A link by which a person signs out of another service. @stability preview */
export interface SignOutLink {
  label: string;
  url: string;
}

/** A way of signing in besides password and API key. @stability preview */
export interface SignInWay {
  /** The button of the sign-in page posts to `/login/{name}`, with the field `next`. */
  name: string;
  /** The text of the button. */
  label: string;
  /** Returns why nobody can sign in this way right now, as a message; null if people can. The page waits for it. */
  problem(): Promise<string | null>;
  /** Returns a link to sign out there too, for the page after a sign-out here; null for none. Must not take long. */
  signOut?(person: SessionCaller): Promise<SignOutLink | null>;
  /** Returns what makes the part of a person's account page, from the hidden input of its forms and the way to the root. */
  accountPart(person: SessionCaller): Promise<(token: Html, root: string) => Html>;
}
