// A file for good: stored by the server under a service, which is another thing than looking at it.

import { useState } from "preact/hooks";
import { ApiError, type Parameters } from "../../api/requests.ts";
import type { FileAbout } from "../../model/file-about.ts";
import { labelParameters, serviceNameFor } from "../../model/file-labels.ts";
import { withService } from "../../model/selector.ts";
import { formatCount } from "../../model/units.ts";
import { FollowedLink } from "../followed-link.tsx";
import { requests } from "../store.ts";
import { WITHOUT_FILE, wholeOf } from "./file-view.ts";

/** The answer of `POST /api/v1/ingest`. */
interface Stored {
  profiles: number;
  samples: number;
  from: number;
  to: number;
  duplicate: boolean;
}

export function StoreForm({ file, about }: { file: File; about: FileAbout }) {
  const [service, setService] = useState(serviceNameFor(file.name));
  const [labels, setLabels] = useState("");
  const [isSending, setSending] = useState(false);
  const [error, setError] = useState<ApiError>();
  const [stored, setStored] = useState<Stored & { service: string }>();

  const store = async (): Promise<void> => {
    setSending(true);
    setError(undefined);
    try {
      const parameters: Parameters = [["service", service.trim()], ...labelParameters(labels)];
      const init = { method: "POST", body: file };
      const response = await requests.send(init, "ingest", parameters, new AbortController().signal);
      setStored({ ...((await response.json()) as Stored), service: service.trim() });
    } catch (failure) {
      setError(failure instanceof ApiError ? failure : new ApiError("unreadable", String(failure), ""));
    }
    setSending(false);
  };

  return (
    <form
      class="store-form"
      onSubmit={(event) => {
        event.preventDefault();
        void store();
      }}
    >
      <label>
        Service
        <input required value={service} data-testid="store-service" onInput={(event) => setService(event.currentTarget.value)} spellcheck={false} />
      </label>
      <label>
        Labels
        <input
          value={labels}
          placeholder="version=1.4 host=web-1"
          data-testid="store-labels"
          onInput={(event) => setLabels(event.currentTarget.value)}
          spellcheck={false}
        />
      </label>
      <button type="submit" class="primary-button" data-testid="store-submit" disabled={isSending || service.trim() === ""}>
        Store at {location.host}
      </button>
      {error && (
        <p class="files-error" role="alert">
          <strong>{error.message}</strong> <span class="muted">{error.hint}</span>
        </p>
      )}
      {stored && (
        <p role="status" data-testid="stored">
          {stored.duplicate
            ? "It was stored before, a moment ago, as "
            : `${formatCount(stored.samples)} samples are stored at ${location.host} as `}
          <FollowedLink
            testId="open-stored"
            patch={{
              ...WITHOUT_FILE,
              screen: "profile",
              query: withService("{}", stored.service) ?? "{}",
              type: about.default_type ?? "cpu",
              ...wholeOf(stored),
              live: false,
            }}
          >
            {stored.service}
          </FollowedLink>
        </p>
      )}
    </form>
  );
}
