// What stands in place of every screen while the server does not know who asks.

import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import type { ApiError } from "../api/requests.ts";
import "../styles/sign-in.css";
import { Mark } from "./icons.tsx";
import { Segmented } from "./segmented.tsx";
import { session, signIn, signInAsked } from "./session.ts";

const WAYS = [
  ["password", "User and password"],
  ["token", "Token"],
] as const;
type Way = (typeof WAYS)[number][0];

const way = signal<Way | undefined>(undefined);

export function SignIn() {
  const { has_users: hasUsers = true, has_tenants: hasTenants = false, is_open: isOpen = false } = session.value ?? {};
  const chosen = way.value ?? (hasUsers ? "password" : "token");
  const [error, setError] = useState<ApiError>();
  const [isSending, setSending] = useState(false);
  const asked = signInAsked.value;
  return (
    <main class="sign-in">
      <form
        class="sign-in-form"
        data-testid="sign-in"
        aria-labelledby="sign-in-title"
        onSubmit={async (event) => {
          event.preventDefault();
          const form = event.currentTarget;
          const typed = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));
          setSending(true);
          const refusal = await signIn(typed);
          setSending(false);
          setError(refusal);
          // A wrong secret is typed anew.
          if (refusal) form.querySelector<HTMLInputElement>("input[type=password]")?.select();
        }}
      >
        <div class="sign-in-brand">
          <Mark />
          <span>Candela</span>
        </div>
        <h1 id="sign-in-title">{isOpen ? "Choose a tenant" : "Sign in"}</h1>
        <p class="muted">{location.host}</p>
        {!isOpen && (
          <Segmented
            label="How to sign in"
            value={chosen}
            options={WAYS}
            onChange={(next) => {
              way.value = next;
              setError(undefined);
            }}
          />
        )}
        {!isOpen && chosen === "password" && (
          <>
            <label>
              User
              <input name="user" autocomplete="username" autocapitalize="none" spellcheck={false} required autofocus />
            </label>
            <label>
              Password
              <input name="password" type="password" autocomplete="current-password" required />
            </label>
          </>
        )}
        {!isOpen && chosen === "token" && (
          <label>
            Token
            <input name="token" type="password" autocomplete="current-password" required autofocus />
          </label>
        )}
        {hasTenants && (
          <label>
            Tenant
            <input name="tenant" autocomplete="organization" spellcheck={false} required={isOpen} />
            <span class="muted">Only where your {chosen === "token" ? "token" : "user"} has none of its own.</span>
          </label>
        )}
        {error && (
          <p class="sign-in-error" role="alert" data-testid="sign-in-error">
            {sentence(error.message)} {sentence(error.hint)}
          </p>
        )}
        <button type="submit" class="primary-button" disabled={isSending} data-testid="sign-in-submit">
          {isSending ? "Signing in…" : isOpen ? "Continue" : "Sign in"}
        </button>
        <p class="muted sign-in-note">
          {!error && asked && `${sentence(asked.message)} `}
          Tokens and users stand in the server’s configuration under <code>auth:</code>.
        </p>
      </form>
    </main>
  );
}

function sentence(text: string): string {
  return text === "" ? "" : `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
