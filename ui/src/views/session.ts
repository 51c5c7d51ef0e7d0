// Who asks, as the server sees it, and signing in and out.

import { computed, signal } from "@preact/signals";
import type { ApiError } from "../api/requests.ts";
import { asApiError } from "./loader.ts";
import { refresh, requests } from "./store.ts";

/** As `/api/v1/session` has it. */
export interface Session {
  /** Of the token or user; null for nobody. */
  name: string | null;
  rights: string[] | null;
  tenants: string[] | null;
  /** A cookie says who it is, and not the browser or a proxy with each request. */
  can_sign_out: boolean;
  /** Nobody is asked who he is. */
  is_open: boolean;
  has_users: boolean;
  has_tenants: boolean;
}

export interface Credentials {
  token?: string;
  user?: string;
  password?: string;
  tenant?: string;
}

export const session = signal<Session | undefined>(undefined);

/** What the server said when it did not know who asks. */
export const signInAsked = signal<ApiError | undefined>(undefined);

/** Whether something can be kept on the server by who asks. */
export const mayWrite = computed(() => session.value?.rights?.includes("write") ?? false);

/** Whether an entry of this author may be removed by who asks. */
export function isOwn(author: string): boolean {
  const { name, rights, is_open: isOpen } = session.value ?? {};
  return isOpen === true || name === author || (rights?.includes("admin") ?? false);
}

export function followSession(): void {
  requests.onUnauthorized = (error) => {
    signInAsked.value = error;
    void look();
  };
  void look();
}

async function look(): Promise<void> {
  try {
    session.value = await requests.json<Session>("session", [], new AbortController().signal);
  } catch {
    // A server that does not answer is told of by everything else on the page.
  }
}

/** What is wrong, in the server's words; `undefined` when all is well. */
export async function signIn(credentials: Credentials): Promise<ApiError | undefined> {
  const listener = requests.onUnauthorized;
  // The refusal of what was typed is for the form.
  requests.onUnauthorized = () => undefined;
  try {
    session.value = await requests.change<Session>("POST", "session", [], credentials);
  } catch (error) {
    return asApiError(error);
  } finally {
    requests.onUnauthorized = listener;
  }
  signInAsked.value = undefined;
  refresh();
  return undefined;
}

/** The page is loaded anew: nothing of what was on it stays for who comes next. */
export async function signOut(): Promise<void> {
  await requests.change("DELETE", "session", []);
  location.reload();
}
